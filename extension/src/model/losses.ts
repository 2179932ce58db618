/** What compactions lost, in words: a document for a session, a few words for a window's row. */

import type { Loss } from "../protocol.ts";
import { counted, dotted, plain, type Say } from "./text.ts";

/** Something that was there before a compaction. */
interface Kept {
  readonly name: string;
  readonly ref: string | null;
  readonly lost: boolean | null;
}

/** How many things a compaction lost; null where part of it is encrypted and nothing is known. */
function lostCount(loss: Loss): number | null {
  const parts = [loss.task, ...loss.openPlanSteps, ...loss.editedFiles, ...loss.failingCommands];
  const known = parts.filter((part) => part !== null && part.lost !== null);
  if (known.length === 0 && loss.sealed) {
    return null;
  }
  return known.filter((part) => part?.lost === true).length;
}

/** The words beside a window: what it lost, and what was read again in it. */
export function lossWords(loss: Loss, say: Say): string {
  const count = lostCount(loss);
  return dotted(
    count === null ? say("losses not known") : count === 0 ? "" : say("{0} lost", count),
    loss.rereadsUnchanged === 0 ? "" : say("{0} read again", loss.rereadsUnchanged),
    loss.loop ? say("going round in circles") : "",
  );
}

/** The losses of all compactions of a session, the newest first. */
export function lossesText(losses: readonly Loss[], say: Say): string {
  if (losses.length === 0) {
    return `${say("This session was never compacted, so nothing was lost.")}\n`;
  }
  const head = [
    say("What each compaction lost: what was there before it, and is not in its replacement."),
    say("✗ lost   ✓ still there   ? nobody can tell"),
  ];
  const parts = losses.toReversed().map((loss) => lossText(loss, say));
  return `${[head.join("\n"), ...parts].join("\n\n\n")}\n`;
}

function lossText(loss: Loss, say: Say): string {
  const name =
    loss.number === null ? say("A window that was rolled back") : say("Window {0}", loss.number);
  const title = dotted(
    name,
    plain(loss.trigger ?? ""),
    plain(loss.strategy ?? ""),
    plain(loss.openedAt ?? ""),
    say("record {0}", loss.openedAtSeq),
  );
  const task = loss.task === null ? [] : [{ ...loss.task, name: loss.task.text }];
  const steps = loss.openPlanSteps.map((step) => ({ ...step, name: step.text }));
  const files = loss.editedFiles.map((file) => ({ ...file, name: `${file.change} ${file.uri}` }));
  const commands = loss.failingCommands.map((each) => ({
    ...each,
    name: dotted(each.command, each.exitCode === null ? "" : say("exit code {0}", each.exitCode)),
  }));
  const lists = [
    list(say("Last request"), task, say),
    list(say("Open steps of the plan"), steps, say),
    list(say("Changed files"), files, say),
    list(say("Commands that failed"), commands, say),
    loss.notListed > 0 ? [notListed(loss.notListed, say)] : [],
    rereadLines(loss, say),
  ];
  const sealed = say("Part of the replacement is encrypted: nobody but the provider can read it.");
  const body = lists.filter((lines) => lines.length > 0).map((lines) => lines.join("\n"));
  return [title, "─".repeat(60), ...(loss.sealed ? [sealed, ""] : []), body.join("\n\n")].join(
    "\n",
  );
}

function notListed(count: number, say: Say): string {
  return counted(count, say("1 more is not listed."), say("{0} more are not listed.", count));
}

function list(title: string, parts: readonly Kept[], say: Say): string[] {
  if (parts.length === 0) {
    return [];
  }
  const lost = parts.filter((part) => part.lost === true).length;
  const heading = say("{0}: {1} of {2} lost", title, lost, parts.length);
  return [heading, ...parts.map(({ name, ref, lost: isLost }) => line(name, ref, isLost))];
}

function line(name: string, ref: string | null, lost: boolean | null): string {
  const sign = lost === null ? "?" : lost ? "✗" : "✓";
  return `  ${sign} ${dotted(plain(name), plain(ref ?? ""))}`;
}

function rereadLines(loss: Loss, say: Say): string[] {
  if (loss.reads === 0) {
    return [];
  }
  const size = loss.bytes.toLocaleString("en-US");
  const heading = say(
    "Reads of files since then: {0}, of unchanged ones again: {1} ({2})",
    loss.reads,
    loss.rereadsUnchanged,
    counted(loss.bytes, say("1 byte"), say("{0} bytes", size)),
  );
  const rereads = loss.rereads.map(({ uri, times }) => `  ${times}× ${plain(uri)}`);
  const over = loss.loopOver.map(plain).join(", ");
  const loop = loss.loop ? [say("It goes round in circles: {0}", over)] : [];
  return [heading, ...rereads, ...loop];
}
