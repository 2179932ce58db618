/** What compactions lost, in words: a document for a session, a few words for a window's row. */

import type { Loss } from "../protocol.ts";
import { counted, dotted, plain } from "./text.ts";

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
export function lossWords(loss: Loss): string {
  const count = lostCount(loss);
  return dotted(
    count === null ? "losses not known" : count === 0 ? "" : `${count} lost`,
    loss.rereadsUnchanged === 0 ? "" : `${loss.rereadsUnchanged} read again`,
    loss.loop ? "going round in circles" : "",
  );
}

/** The losses of all compactions of a session, the newest first. */
export function lossesText(losses: readonly Loss[]): string {
  if (losses.length === 0) {
    return `${"This session was never compacted, so nothing was lost."}\n`;
  }
  const head = [
    "What each compaction lost: what was there before it, and is not in its replacement.",
    "✗ lost   ✓ still there   ? nobody can tell",
  ];
  const parts = losses.toReversed().map((loss) => lossText(loss));
  return `${[head.join("\n"), ...parts].join("\n\n\n")}\n`;
}

function lossText(loss: Loss): string {
  const name = loss.number === null ? "A window that was rolled back" : `Window ${loss.number}`;
  const title = dotted(
    name,
    plain(loss.trigger ?? ""),
    plain(loss.strategy ?? ""),
    plain(loss.openedAt ?? ""),
    `record ${loss.openedAtSeq}`,
  );
  const task = loss.task === null ? [] : [{ ...loss.task, name: loss.task.text }];
  const steps = loss.openPlanSteps.map((step) => ({ ...step, name: step.text }));
  const files = loss.editedFiles.map((file) => ({ ...file, name: `${file.change} ${file.uri}` }));
  const commands = loss.failingCommands.map((each) => ({
    ...each,
    name: dotted(each.command, each.exitCode === null ? "" : `exit code ${each.exitCode}`),
  }));
  const lists = [
    list("Last request", task),
    list("Open steps of the plan", steps),
    list("Changed files", files),
    list("Commands that failed", commands),
    loss.notListed > 0 ? [notListed(loss.notListed)] : [],
    rereadLines(loss),
  ];
  const sealed = "Part of the replacement is encrypted: nobody but the provider can read it.";
  const body = lists.filter((lines) => lines.length > 0).map((lines) => lines.join("\n"));
  return [title, "─".repeat(60), ...(loss.sealed ? [sealed, ""] : []), body.join("\n\n")].join(
    "\n",
  );
}

function notListed(count: number): string {
  return counted(count, "1 more is not listed.", `${count} more are not listed.`);
}

function list(title: string, parts: readonly Kept[]): string[] {
  if (parts.length === 0) {
    return [];
  }
  const lost = parts.filter((part) => part.lost === true).length;
  const heading = `${title}: ${lost} of ${parts.length} lost`;
  return [heading, ...parts.map(({ name, ref, lost: isLost }) => line(name, ref, isLost))];
}

function line(name: string, ref: string | null, lost: boolean | null): string {
  const sign = lost === null ? "?" : lost ? "✗" : "✓";
  return `  ${sign} ${dotted(plain(name), plain(ref ?? ""))}`;
}

function rereadLines(loss: Loss): string[] {
  if (loss.reads === 0) {
    return [];
  }
  const size = loss.bytes.toLocaleString("en-US");
  const heading = `Reads of files since then: ${loss.reads}, of unchanged ones again: ${loss.rereadsUnchanged} (${counted(loss.bytes, "1 byte", `${size} bytes`)})`;
  const rereads = loss.rereads.map(({ uri, times }) => `  ${times}× ${plain(uri)}`);
  const over = loss.loopOver.map(plain).join(", ");
  const loop = loss.loop ? [`It goes round in circles: ${over}`] : [];
  return [heading, ...rereads, ...loop];
}
