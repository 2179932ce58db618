/** The commands about markers, turns, branches and pins: each finds what it is about, and passes it on. */

import * as vscode from "vscode";
import { tellNoSession } from "./chosenSession.ts";
import type { Commands, House } from "./house.ts";
import type { CheckpointNode } from "./model/node.ts";
import { type Marker, SessionRequest, type SessionSummary } from "./protocol.ts";
import type { SessionNode } from "./sessionItem.ts";
import { telling } from "./telling.ts";

/** What a command about a session is called with: a row, a session by its id, or nothing. */
type Target = SessionNode | { readonly kind?: undefined; readonly sessionId: string };

/** Name them as in package.json, without the prefix. */
export function markerCommands(house: House): Commands {
  const { server, following, markers, branches, pins } = house;

  const sessionOf = async (target?: Target): Promise<SessionSummary | null> => {
    if (target?.kind === "session" || target?.kind === "marker") {
      return target.session;
    }
    if (target?.kind === undefined && target !== undefined) {
      const { sessionId } = target;
      return (await server.request(SessionRequest, { sessionId })).summary;
    }
    return following.current;
  };
  const onSession =
    (act: (session: SessionSummary, marker: Marker | null) => Promise<void>) => (target?: Target) =>
      telling(async () => {
        const session = await sessionOf(target);
        if (session === null) {
          await tellNoSession();
          return;
        }
        await act(session, target?.kind === "marker" ? target.marker : null);
      });

  const commands: Commands = {
    addMarker: onSession((session) => markers.add(session)),
    renameMarker: onSession((session, marker) => markers.rename(session, marker)),
    removeMarker: onSession((session, marker) => markers.remove(session, marker)),
    copyMarkerId: async (target?: Target) => {
      if (target?.kind === "marker") {
        await vscode.env.clipboard.writeText(target.marker.checkpointId);
      }
    },
    showTurns: onSession((session) => markers.turns(session)),
    compareStates: onSession((session, marker) => markers.compare(session, marker)),
    goToSession: async (target?: Target) => {
      const id = target?.kind === "branch" ? target.branch.sessionId : null;
      const session = target?.kind === undefined ? (target?.sessionId ?? null) : null;
      await telling(() => branches.goTo(id ?? session ?? ""));
    },
    goToSource: onSession((session) => branches.go(session, "source")),
    goToBranches: onSession((session) => branches.go(session, "branch")),
    compareWithSource: onSession((session) => branches.compareWithSource(session)),
    showLineage: onSession((session) => branches.lineage(session)),
    deleteBranch: onSession((session) => branches.delete(session)),
    pinFile: (target?: CheckpointNode | vscode.Uri) => pins.pin(target),
    pinLines: () => pins.pinLines(),
    unpinFile: (node?: CheckpointNode) => pins.unpin(node?.pin ?? null),
  };
  return commands;
}
