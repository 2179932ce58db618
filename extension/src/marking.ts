/** Markers for a person: set on a turn, renamed, taken away; and what else a turn is good for. */

import * as vscode from "vscode";
import type { Server } from "./client.ts";
import { type Place, placeNow, placeOfMarker, placeOfTurn } from "./model/comparing.ts";
import { labelOf } from "./model/markers.ts";
import { cut } from "./model/text.ts";
import { askLabel, askMarker, askPlace, askTurn, type ChosenTurn, titleFor } from "./picking.ts";
import {
  type Marker,
  MarkRequest,
  RelabelRequest,
  type SessionSummary,
  type TurnEntry,
  UnmarkRequest,
} from "./protocol.ts";
import type { States } from "./states.ts";
import { tellDone, telling } from "./telling.ts";

interface Action extends vscode.QuickPickItem {
  readonly run: () => Promise<void>;
}

export class MarkerDesk {
  readonly #server: Server;
  readonly #states: States;

  constructor(server: Server, states: States) {
    this.#server = server;
    this.#states = states;
  }

  /** Ask for a turn and a label; Enter twice marks the last complete turn. */
  add(session: SessionSummary): Promise<void> {
    return telling(async () => {
      const title = "Add a Marker";
      const chosen = await askTurn(this.#server, session, title, "toMark");
      if (chosen !== undefined) {
        await this.#mark(session, chosen.choice.turn);
      }
    });
  }

  /** Ask for a turn, then for what to do with it. */
  turns(session: SessionSummary): Promise<void> {
    return telling(async () => {
      const chosen = await askTurn(this.#server, session, "Turns", "toSee");
      if (chosen !== undefined) {
        const { number } = chosen.choice.turn;
        const title = titleFor(`Turn ${number}`, session);
        const placeHolder = "What to do with it?";
        const actions = this.#actions(session, chosen);
        await (await vscode.window.showQuickPick(actions, { title, placeHolder }))?.run();
      }
    });
  }

  /** Ask for another label. */
  rename(session: SessionSummary, marker: Marker | null): Promise<void> {
    return telling(async () => {
      const title = "Rename a Marker";
      const meant = marker ?? (await askMarker(this.#server, session, title));
      const label = meant && (await askLabel(title, cut(labelOf(meant), 160)));
      if (meant && label) {
        const { sessionId } = session;
        const { checkpointId } = meant;
        await this.#server.request(RelabelRequest, { sessionId, checkpointId, label });
      }
    });
  }

  /** Take a marker away, once the person is sure. */
  remove(session: SessionSummary, marker: Marker | null): Promise<void> {
    return telling(async () => {
      const title = "Remove a Marker";
      const meant = marker ?? (await askMarker(this.#server, session, title));
      if (meant === undefined) {
        return;
      }
      const take = "Remove";
      const stays = "The turn stays, and so do notes and branches that were made at it.";
      const sure = await vscode.window.showWarningMessage(
        "Remove this marker?",
        { modal: true, detail: `${labelOf(meant)}\n${stays}` },
        take,
      );
      if (sure === take) {
        const { sessionId } = session;
        const { checkpointId } = meant;
        await this.#server.request(UnmarkRequest, { sessionId, checkpointId });
        tellDone("The marker is removed");
      }
    });
  }

  /** Ask for what is not said yet of two states, and show them side by side. */
  compare(session: SessionSummary, marker: Marker | null): Promise<void> {
    return telling(async () => {
      const title = "Compare States";
      const one =
        marker === null
          ? await askPlace(this.#server, session, title, null)
          : placeOfMarker(marker);
      if (one !== undefined) {
        await this.#compareWith(session, one);
      }
    });
  }

  async #compareWith(session: SessionSummary, one: Place): Promise<void> {
    const title = `Compare “${one.words}” with`;
    const other = await askPlace(this.#server, session, title, one);
    if (other !== undefined) {
      await this.#states.compare(session, one, other);
    }
  }

  #actions(session: SessionSummary, { choice, markers }: ChosenTurn): readonly Action[] {
    const { turn } = choice;
    const here = placeOfTurn(session.sessionId, turn);
    const now = placeNow(session.sessionId, "now");
    const whenComplete: Action[] = [
      {
        label: "Add Marker…",
        iconPath: new vscode.ThemeIcon("bookmark"),
        run: async () => {
          await this.#mark(session, turn);
        },
      },
      {
        label: "Restore from Here…",
        detail: "Opens a branch at a marker on this turn; nothing is taken back here.",
        iconPath: new vscode.ThemeIcon("git-branch"),
        run: () => this.#restore(session, turn, markers),
      },
    ];
    return [
      ...(turn.ended ? whenComplete : []),
      {
        label: "Show View Text",
        detail: "What a model would be told of the session at the end of this turn.",
        iconPath: new vscode.ThemeIcon("open-preview"),
        run: () => this.#states.open("view", session, here),
      },
      {
        label: "Show Checkpoint JSON",
        iconPath: new vscode.ThemeIcon("json"),
        run: () => this.#states.open("checkpoint", session, here),
      },
      {
        label: "Compare with Now",
        iconPath: new vscode.ThemeIcon("diff"),
        run: () => this.#states.compare(session, here, now),
      },
      {
        label: "Compare with…",
        iconPath: new vscode.ThemeIcon("compare-changes"),
        run: () => this.#compareWith(session, here),
      },
    ];
  }

  /** Go on at a marker of this turn: the newest there is, else one that is set first. */
  async #restore(
    session: SessionSummary,
    turn: TurnEntry,
    markers: readonly Marker[],
  ): Promise<void> {
    const there = markers.findLast(({ turnNumber }) => turnNumber === turn.number);
    const marker = there ?? (await this.#mark(session, turn));
    if (marker !== undefined) {
      const { sessionId } = session;
      const { checkpointId } = marker;
      const asked = { sessionId, checkpointId };
      await vscode.commands.executeCommand("codexCheckpoints.restoreMarker", asked);
    }
  }

  async #mark(session: SessionSummary, turn: TurnEntry): Promise<Marker | undefined> {
    const title = titleFor(`Add a Marker on Turn ${turn.number}`, session);
    const label = await askLabel(title, `Turn ${turn.number}`);
    if (!label) {
      return undefined;
    }
    const { sessionId } = session;
    const { turnId } = turn;
    const marker = await this.#server.request(MarkRequest, { sessionId, label, turnId });
    tellDone(`Turn ${turn.number} is marked`);
    return marker;
  }
}
