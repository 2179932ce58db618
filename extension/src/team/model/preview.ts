/** The model of the push preview: the data that is sent, and the data that never is. */

import type { LeavingText, Push, PushedSession, ShownSession } from "../../client/protocol.ts";
import { LEFT_OUT, NEVER_PUSHED, NOTHING_NEW } from "../../client/words.ts";
import { dotted, plain } from "../../common/model/text.ts";
import { byteWords, placeName, type Remote, sizeWords } from "./texts.ts";

/** The preview of the push of one session. */
export interface PushView {
  readonly kind: "push";
  readonly sessionId: string;
  readonly name: string;
  /** The remote in a few words, and its full address or path. */
  readonly remote: string;
  readonly place: string;
  readonly size: string;
  /** The choices of who can read the session; a folder has only one. */
  readonly readers: readonly Reader[];
  readonly facts: readonly Fact[];
  readonly warning: string;
  readonly longest: readonly LongText[];
  readonly never: readonly string[];
  /** The message if the remote is already up to date; empty if there is something to send. */
  readonly unchanged: string;
  /** The message after the push; empty before. */
  readonly done: string;
}

/** Who can read the session: a team, or only its owner (null). */
export interface Reader {
  readonly team: string | null;
  readonly label: string;
  readonly about: string;
}

/** A kind of redacted secret or of omitted content, with its count. */
export interface Fact {
  readonly name: string;
  readonly value: string;
}

/** One of the longest texts to be sent. */
export interface LongText {
  readonly line: string;
  readonly chars: string;
  readonly beginning: string;
}

/** Make the view of a preview; null if the session was refused. */
export function pushView(name: string, push: Push, remote: Remote, done = ""): PushView | null {
  const [session] = push.sessions;
  if (session === undefined) {
    return null;
  }
  const isUnchanged = session.state === "unchanged" && done === "";
  return {
    kind: "push",
    sessionId: session.sessionId,
    name,
    remote: placeName(remote),
    place: plain(remote.place),
    size: sizeWords(session),
    readers: readersOf(remote, push.teams),
    facts: factsOf(session),
    warning: push.caution,
    longest: push.longest.map(longText),
    never: NEVER_PUSHED,
    unchanged: isUnchanged ? NOTHING_NEW : "",
    done,
  };
}

function readersOf(remote: Remote, teams: readonly string[]): readonly Reader[] {
  if (!remote.isServer) {
    const about = `Everybody who can read the folder ${plain(remote.place)}`;
    return [{ team: null, label: "Your machines", about }];
  }
  const own = { team: null, label: "Private", about: "Only you, on each of your machines" };
  const others = teams.map((team) => ({
    team,
    label: `Team ${plain(team)}`,
    about: `Everybody in the team ${plain(team)} can read and pull it`,
  }));
  return [own, ...others];
}

const PARTS: Readonly<Record<string, readonly [one: string, many: string]>> = LEFT_OUT;

function factsOf({ redacted, leftOut }: PushedSession): readonly Fact[] {
  const count = (number: number) => number.toLocaleString("en-US");
  const secrets = Object.entries(redacted).map(([kind, number]) => ({
    name: `Redacted: ${plain(kind).replaceAll("_", " ")}`,
    value: count(number),
  }));
  const parts = Object.entries(leftOut).map(([kind, number]) => ({
    name: `Left out: ${PARTS[kind]?.[1] ?? plain(kind)}`,
    value: count(number),
  }));
  return [...secrets, ...parts];
}

function longText({ line, chars, beginning }: LeavingText): LongText {
  return {
    line: line.toLocaleString("en-US"),
    chars: chars.toLocaleString("en-US"),
    beginning: [...beginning].length < chars ? `${plain(beginning)}…` : plain(beginning),
  };
}

/** Return the previewed data of a push, so that exactly this is sent. */
export function shownIn(push: Push): readonly ShownSession[] {
  return push.sessions
    .filter(({ state }) => state === "new")
    .map(({ sessionId, lines, digest }) => ({ sessionId, lines, digest }));
}

/** Confirm a finished push. */
export function pushedWords({ sessions: [session], team }: Push, remote: Remote): string {
  const place = placeName(remote);
  if (session?.state === "ahead") {
    return `Later lines of this session are in ${place} already, from another machine.`;
  }
  const sent = session === undefined || session.sent === 0 ? "" : `${byteWords(session.sent)} sent`;
  const readers = remote.isServer ? (team === null ? "private" : `team ${plain(team)}`) : "";
  const more = dotted(sent, readers);
  return `Pushed to ${place}${more === "" ? "" : ` · ${more}`}.`;
}
