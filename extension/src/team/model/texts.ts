/** Texts about the remote and its sessions; everything in them was written by other people. */

import type {
  PulledSession,
  RemoteChoice,
  RemoteSession,
  RemoteStatus,
} from "../../client/protocol.ts";
import {
  type Appearance,
  age,
  ago,
  counted,
  countedIfAny,
  cut,
  dotted,
  folderName,
  listed,
  plain,
  rowOf,
} from "../../common/model/text.ts";
import type { Shared } from "../../page/model/page.ts";

/** The chosen remote. */
export interface Remote {
  readonly place: string;
  readonly owner: string;
  readonly machine: string;
  readonly isServer: boolean;
}

/** Return this machine's remote; null if none is set. */
export function remoteOf({ place, owner, machine, isServer }: RemoteChoice): Remote | null {
  return place === null ? null : { place, owner: owner ?? "", machine: machine ?? "", isServer };
}

/** Shorten a place: a server and its database, or the name of a folder. */
export function placeName({ place, isServer }: Pick<Remote, "place" | "isServer">): string {
  const address = isServer ? /^\w+:\/\/(?:[^@/]*@)?([^?#]*)/.exec(place)?.[1] : undefined;
  return plain(address ?? folderName(place)) || plain(place);
}

/** The row of the remote itself. */
export function remoteRow(remote: Remote): Appearance {
  const { place, owner, machine, isServer } = remote;
  const label = isServer ? "Team" : "Remote";
  const description = placeName(remote);
  const about = `As ${plain(owner)}, from ${plain(machine)}`;
  return rowOf({
    label,
    description,
    tooltip: [`${label}: ${plain(place)}`, about, "Unfold it to read the list."].join("\n"),
    spoken: `${label}, ${description}`,
    icon: isServer ? "organization" : "cloud",
  });
}

/** The row of a session in the remote. */
export function remoteSessionRow(session: RemoteSession, remote: Remote, now: number): Appearance {
  const about = remoteTitle(session);
  const since = age(session.updatedAt, now);
  const whose = ownerText(session, remote);
  return {
    label: cut(about, 160),
    description: dotted(cut(whose, 24), since),
    tooltip: remoteFacts(session, remote, now).join("\n"),
    spoken: listed(about, whose, since, readersOf(session, remote)),
    icon: remote.isServer ? (session.team === null ? "lock" : "organization") : "comment",
    colour: null,
  };
}

export function remoteTitle({ title, task }: Pick<RemoteSession, "title" | "task">): string {
  return plain(title ?? "") || plain(task ?? "") || "No message yet";
}

/** Name the other person, or another machine of the same person. */
export function ownerText({ owner, machine }: RemoteSession, remote: Remote): string {
  return plain(isOwn({ owner }, remote) ? machine : owner);
}

export function isOwn({ owner }: Pick<RemoteSession, "owner">, remote: Remote): boolean {
  return owner === remote.owner;
}

function readersOf({ team }: RemoteSession, { isServer }: Remote): string {
  if (!isServer) {
    return "";
  }
  return team === null ? "private" : `team ${plain(team)}`;
}

function remoteFacts(session: RemoteSession, remote: Remote, now: number): string[] {
  const title = cut(plain(session.title ?? ""), 160);
  const task = cut(plain(session.task ?? ""), 160);
  const facts: [string, string][] = [
    ["Last message", title === task ? "" : task],
    ["Pushed by", `${plain(session.owner)}, from ${plain(session.machine)}`],
    ["Who can read it", readersOf(session, remote)],
    ["Last change", ago(session.updatedAt, now)],
    ["Pushed", ago(session.pushedAt, now)],
    ["Folder", plain(session.cwd ?? "")],
    ["Branch", plain(session.git?.branch ?? "")],
    ["Model", plain(session.model ?? "")],
    ["Size", sizeWords(session)],
    ["Session", plain(session.sessionId)],
  ];
  const known = facts.filter(([, value]) => value !== "");
  return [cut(remoteTitle(session), 160), ...known.map(([name, value]) => `${name}: ${value}`)];
}

/** Describe the size of a history: `1,234 lines, 2.3 MB`. */
export function sizeWords({ lines, bytes }: { lines: number; bytes: number }): string {
  const count = counted(lines, "1 line", `${lines.toLocaleString("en-US")} lines`);
  return `${count}, ${byteWords(bytes)}`;
}

const UNITS = ["kB", "MB", "GB", "TB"];

/** Format a number of bytes, as the command line does. */
export function byteWords(bytes: number): string {
  let [value, unit] = [bytes, "B"];
  for (const larger of UNITS) {
    if (value < 1000) {
      break;
    }
    [value, unit] = [value / 1000, larger];
  }
  return unit === "B" ? `${bytes} B` : `${value.toFixed(1)} ${unit}`;
}

/** The note on a remote session's page, and the person's name in its conversation. */
export function sharedOf(session: RemoteSession, remote: Remote, now: number): Shared {
  const isMine = isOwn(session, remote);
  const whose = isMine ? "Your session" : `Session of ${plain(session.owner)}`;
  const since = ago(session.pushedAt, now).replace(/^now$/, "just now");
  const readers = readersOf(session, remote);
  const from = `${whose}, pushed from ${plain(session.machine)}${since === "" ? "" : ` ${since}`}`;
  const note = `${from}${readers === "" ? "" : ` (${readers})`}. Here it is read-only.`;
  return { note, speaker: isMine ? "You" : plain(session.owner) };
}

/** Describe a pull before it starts. */
export function pullWords(session: RemoteSession, remote: Remote, folder: string): string {
  const whose = isOwn(session, remote) ? "you" : plain(session.owner);
  const from = `It was pushed by ${whose} from ${plain(session.machine)}.`;
  return [
    `“${cut(remoteTitle(session), 120)}”\n`,
    `${from} The conversation (${sizeWords(session)}), notes, markers and pins arrive ` +
      `as a new session for ${plain(folder)}; no file does.\n`,
    "Facts are suspect until this machine has verified them, and the permissions of the other " +
      "machine are not taken over. Resumed, its text goes to your model: pull only from people " +
      "you trust.",
  ].join("\n");
}

/** Describe a finished pull. */
export function pulledWords(pulled: PulledSession): string {
  const { lines, notes, markers, digest, before } = pulled;
  const arrived = listed(
    counted(lines, "1 line", `${lines.toLocaleString("en-US")} lines`),
    countedIfAny(notes, "1 note", `${notes} notes`),
    countedIfAny(markers, "1 marker", `${markers} markers`),
  );
  const sentences = [
    `Pulled as a branch: ${arrived}.`,
    DIGESTS[digest ?? ""] ?? "",
    plain(before ?? ""),
  ];
  return sentences.filter((sentence) => sentence !== "").join(" ");
}

const DIGESTS: Readonly<Record<string, string>> = {
  made: "Its last summary was encrypted for another account: the branch opens with our digest.",
  failed:
    "Its last summary was encrypted for another account and is missing. Compact the branch to " +
    "put a digest in its place.",
};

const ADDRESS = /^postgres(?:ql)?:\/\/([^/?#]*)@[^/?#@]+\/[^/?#]+/;

/** Return why a text cannot be the address of a server; null if it can. */
export function addressProblem(text: string): string | null {
  const login = ADDRESS.exec(text.trim())?.[1];
  if (login?.includes(":")) {
    return "Leave the password out: it comes from PGPASSWORD or ~/.pgpass, and is never stored.";
  }
  return login === undefined || login === ""
    ? "An address is postgresql://USER@HOST/DATABASE."
    : null;
}

/** List what is created in a place that is not a remote yet. */
export function makeWords(place: string): string {
  return place.includes("://")
    ? "This makes the schema codex_checkpoints and four roles in this database, and adds your login " +
        "as the first member. The login needs the right to make roles. Nothing is pushed yet."
    : "This makes one folder and one small file there. Nothing is pushed yet.";
}

/** Confirm that a remote was set. */
export function setWords({ place, sessions }: RemoteStatus): string {
  const name = placeName({ place, isServer: place.includes("://") });
  const there = counted(sessions, "1 session", `${sessions.toLocaleString("en-US")} sessions`);
  return `${name} is the remote of this machine now: ${there} there.`;
}
