/** Commands of the remote: choose it, list its sessions, read, pull and push them. */

import * as vscode from "vscode";
import type { RemoteStatus, SessionSummary } from "../client/protocol.ts";
import { attempt, longRequest } from "../client/requests.ts";
import { type App, type Commands, onSession, showNew } from "../common/app.ts";
import {
  action,
  askToDo,
  confirm,
  confirmLoss,
  inform,
  runCommand,
  showDone,
} from "../common/messages.ts";
import { cut, harmless, plain, subject } from "../common/model/text.ts";
import type { Tabs } from "../common/panel.ts";
import { askFolder } from "../common/pickers.ts";
import { openCodex } from "../common/terminal.ts";
import {
  addressProblem,
  makeWords,
  pulledWords,
  pullWords,
  type Remote,
  remoteOf,
  remoteTitle,
  setWords,
} from "./model/texts.ts";
import type { RemotePages } from "./page.ts";
import type { PushPreview } from "./preview.ts";
import { searchRemote } from "./search.ts";
import type { RemoteNode } from "./tree.ts";

/** The row of a session in the remote. */
type SharedRow = Extract<RemoteNode, { readonly kind: "remoteSession" }>;

export function teamCommands(
  app: App,
  pages: RemotePages,
  previews: Tabs<"sessionId", PushPreview>,
): Commands {
  const { remote } = app.tree;
  return {
    setRemote: () => askForRemote(app),
    searchRemote: () =>
      attempt(async () => {
        const chosen = await chosenRemote(app);
        if (chosen !== null) {
          await searchRemote(app, chosen, pages);
        }
      }),
    refreshRemote: () => remote.refresh(),
    loadMoreRemote: () => remote.more(),
    retryRemote: () => remote.retry(),
    openRemoteSession: (row?: SharedRow) => row && pages.show(row.shared),
    pullSession: (row?: SharedRow) => row && attempt(() => pull(app, row)),
    removeFromRemote: (row?: SharedRow) => row && attempt(() => remove(app, row)),
    pushSession: onSession(app, (session) => openPreview(app, session, previews)),
  };
}

/** Ask for a folder or a server, and make it the remote. */
function askForRemote(app: App): Promise<void> {
  return askToDo(
    "Set Remote",
    [
      action(
        "folder",
        "A Folder That Your Machines Share…",
        () => attempt(() => setFolder(app)),
        "Synced or mounted, for one person: who can read the folder can read all of it",
      ),
      action(
        "database",
        "A PostgreSQL Server…",
        () => attempt(() => setServer(app)),
        "For a team, or one person. Sessions are private unless you give them to a team",
      ),
    ],
    "Nothing leaves this machine without “Push Session…”",
  );
}

async function setFolder(app: App): Promise<void> {
  const [folder] =
    (await vscode.window.showOpenDialog({
      ...{ title: "Choose the Folder for Your Sessions", openLabel: "Use This Folder" },
      ...{ canSelectFiles: false, canSelectFolders: true },
    })) ?? [];
  if (folder !== undefined) {
    await setRemote(app, folder.fsPath);
  }
}

async function setServer(app: App): Promise<void> {
  const address = await vscode.window.showInputBox({
    title: "The Server for Your Sessions",
    prompt: "The password comes from PGPASSWORD or ~/.pgpass, and is never stored.",
    placeHolder: "postgresql://USER@HOST/DATABASE",
    ignoreFocusOut: true,
    validateInput: addressProblem,
  });
  if (address !== undefined) {
    await setRemote(app, address.trim());
  }
}

/** Make a place the remote of this machine; ask before creating anything there. */
async function setRemote({ server, tree }: App, place: string): Promise<void> {
  const ask = (make: boolean): Thenable<RemoteStatus> => {
    const busy = { location: vscode.ProgressLocation.Window, title: "Asking the remote" };
    return vscode.window.withProgress(busy, () => server.request("remoteSet", { place, make }));
  };
  let status = await ask(false);
  if (!status.made) {
    const question = `Make a remote in ${plain(place)}?`;
    if (!(await confirm(question, makeWords(place), "Make Remote"))) {
      return;
    }
    status = await ask(true);
  }
  tree.refresh();
  await inform(harmless(setWords(status)));
}

/** Return the remote of this machine; null after saying that none is set. */
async function chosenRemote({ server }: App): Promise<Remote | null> {
  const remote = remoteOf(await server.request("remote", {}));
  if (remote === null) {
    await inform("No remote is set on this machine yet: a folder, or a server.", {
      "Set Remote…": () => runCommand("setRemote"),
    });
  }
  return remote;
}

async function openPreview(
  app: App,
  session: SessionSummary,
  previews: Tabs<"sessionId", PushPreview>,
): Promise<void> {
  if ((await chosenRemote(app)) === null) {
    return;
  }
  const { sessionId } = session;
  const before = previews.find({ sessionId });
  previews.open(`Push “${cut(subject(session), 40)}”`, { sessionId });
  before?.renew();
}

/** Pull a session from the remote as a new branch, and select it. */
async function pull(app: App, { shared, remote }: SharedRow): Promise<void> {
  const folder = await askFolder();
  if (folder === undefined) {
    return;
  }
  const detail = pullWords(shared, remote, folder);
  if (!(await confirm("Pull this session as a branch?", detail, "Pull as Branch"))) {
    return;
  }
  const asked = { sessionId: shared.sessionId, into: folder };
  const done = await longRequest(app.server, "Pulling the session", "pull", asked);
  if (done === undefined) {
    return;
  }
  const { sessionId, cwd } = done;
  await showNew(app, sessionId);
  await runCommand("openSessionPage", { sessionId }); // with its lineage
  await inform(pulledWords(done), {
    "Resume in Terminal": () => openCodex(sessionId, cwd),
  });
}

async function remove({ server, tree }: App, { shared }: SharedRow): Promise<void> {
  const { sessionId } = shared;
  const stays = "It is deleted there for good. Sessions on your machines stay as they are.";
  const detail = `“${cut(remoteTitle(shared), 120)}”\n\n${stays}`;
  if (await confirmLoss("Remove this session from the remote?", detail, "Remove")) {
    await server.request("remoteDelete", { sessionId });
    tree.remote.refresh();
    showDone("Removed from the remote");
  }
}
