/** The rows of the remote in the Sessions view; nothing is loaded before the user unfolds it. */

import * as vscode from "vscode";
import type { Server } from "../client/client.ts";
import type { RemoteSession } from "../client/protocol.ts";
import { errorText } from "../client/requests.ts";
import { plain, rowOf } from "../common/model/text.ts";
import { treeItem } from "../common/rows.ts";
import { type Listing, RemoteListing, rowId } from "./model/listing.ts";
import {
  isOwn,
  placeName,
  type Remote,
  remoteOf,
  remoteRow,
  remoteSessionRow,
} from "./model/texts.ts";

const PAGE = 50;

export type RemoteNode =
  | { readonly kind: "remote"; readonly remote: Remote }
  | { readonly kind: "remoteSession"; readonly remote: Remote; readonly shared: RemoteSession }
  | {
      readonly kind: "remoteNote";
      readonly note: "empty" | "reading" | "more";
      readonly text: string;
    }
  | { readonly kind: "remoteTrouble"; readonly why: string };

/** The remote's part of a tree. */
export class RemoteRows {
  readonly #server: Server;
  readonly #listing: RemoteListing;
  #remote: Remote | null = null;
  /** The current search text. */
  #search = "";

  /** `changed` is the callback after each change of the rows below the remote. */
  constructor(server: Server, changed: () => void) {
    this.#server = server;
    const ask = async (cursor: string | null) => {
      const search = this.#search === "" ? null : this.#search;
      const asked = { cwd: null, user: null, search, limit: PAGE, cursor };
      return await server.request("remoteSessions", asked);
    };
    this.#listing = new RemoteListing(ask, (error) => plain(errorText(error)), changed);
  }

  get remote(): Remote | null {
    return this.#remote;
  }

  /** The row of the remote, if one is set; this reads a local file and opens no connection. */
  async top(): Promise<readonly RemoteNode[]> {
    const remote = await this.#chosen();
    if (remote?.place !== this.#remote?.place) {
      this.#listing.forget();
    }
    this.#remote = remote;
    return remote === null ? [] : [{ kind: "remote", remote }];
  }

  async #chosen(): Promise<Remote | null> {
    try {
      return remoteOf(await this.#server.request("remote", {}));
    } catch (error) {
      this.#server.log.warn(`remote: ${error instanceof Error ? error.message : error}`);
      return null;
    }
  }

  /** The rows below the remote as loaded so far; the first call starts loading. */
  below({ remote }: RemoteNode & { readonly kind: "remote" }): readonly RemoteNode[] {
    this.#listing.open();
    return nodesOf(this.#listing.state, remote, this.#search);
  }

  /** Set the search text of the list. */
  search(text: string): void {
    if (text !== this.#search) {
      this.#search = text;
      this.#listing.refresh();
    }
  }

  refresh(): void {
    this.#listing.refresh();
  }

  more(): void {
    this.#listing.more();
  }

  retry(): void {
    this.#listing.retry();
  }
}

function nodesOf(listing: Listing, remote: Remote, search: string): readonly RemoteNode[] {
  const { items, phase, hasMore, why } = listing;
  const note = (name: "empty" | "reading" | "more", text: string): RemoteNode => ({
    kind: "remoteNote",
    note: name,
    text,
  });
  const nothing = search === "" ? "No session there yet" : "No session there matches the search";
  return [
    ...(phase === "failed" ? [{ kind: "remoteTrouble", why } as const] : []),
    ...items.map((shared) => ({ kind: "remoteSession", remote, shared }) as const),
    ...(phase === "reading" ? [note("reading", `Asking ${placeName(remote)}…`)] : []),
    ...(phase === "read" && items.length === 0 ? [note("empty", nothing)] : []),
    ...(hasMore ? [note("more", "Load more")] : []),
  ];
}

export function remoteItem(node: RemoteNode): vscode.TreeItem {
  switch (node.kind) {
    case "remote": {
      const { Collapsed } = vscode.TreeItemCollapsibleState;
      const item = treeItem(`remote/${node.remote.place}`, remoteRow(node.remote), Collapsed);
      item.contextValue = "remote";
      return item;
    }
    case "remoteSession": {
      const { shared, remote } = node;
      const item = treeItem(
        `remote/session/${rowId(shared)}`,
        remoteSessionRow(shared, remote, Date.now()),
      );
      item.contextValue = isOwn(shared, remote) ? "remoteSession own" : "remoteSession";
      const command = "codexCheckpoints.openRemoteSession";
      item.command = { command, title: "Show This Session", arguments: [node] };
      return item;
    }
    case "remoteTrouble": {
      const title = "Try Again";
      const row = { label: node.why, icon: "warning", description: title };
      const tooltip = `${node.why}\nA click tries again.`;
      const item = treeItem("remote/trouble", rowOf({ ...row, tooltip }));
      item.contextValue = "remoteTrouble";
      item.command = { command: "codexCheckpoints.retryRemote", title };
      return item;
    }
    case "remoteNote": {
      const icons = { empty: "info", reading: "loading~spin", more: "ellipsis" };
      const row = rowOf({ label: node.text, icon: icons[node.note] });
      const item = treeItem(`remote/${node.note}`, row);
      if (node.note === "more") {
        const command = "codexCheckpoints.loadMoreRemote";
        item.command = { command, title: node.text };
      }
      return item;
    }
    default:
      return node satisfies never;
  }
}
