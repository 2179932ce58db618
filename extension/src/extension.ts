import * as vscode from "vscode";
import { pinCommands } from "./checkpoint/pins.ts";
import { CheckpointTree, checkpointCommands } from "./checkpoint/tree.ts";
import { Server } from "./client/client.ts";
import { chooseCodex, choosePython, chooseStateFolder } from "./client/interpreters.ts";
import type { Seeker } from "./client/launch.ts";
import { openSettings, SECTION, setContext } from "./client/settings.ts";
import type { App, Commands } from "./common/app.ts";
import { Documents } from "./common/documents.ts";
import { inform, runCommand } from "./common/messages.ts";
import { showBadges } from "./common/rows.ts";
import { Reports } from "./common/sectionsPage.ts";
import { compactionCommands, offerCompaction } from "./compaction/commands.ts";
import { compactionPreviews } from "./compaction/preview.ts";
import { ConnectionTree, connectionCommands, warnWhenLost } from "./connect/connection.ts";
import { markerCommands } from "./markers/commands.ts";
import { noteCommands } from "./notes/commands.ts";
import { packCommands } from "./packs/commands.ts";
import { changeCommands } from "./page/changes.ts";
import { SessionPages, sessionPageCommands } from "./page/page.ts";
import { restoreCommands, restorePreviews } from "./restore/commands.ts";
import { fileRestoreCommands } from "./restore/files.ts";
import { followChangedFiles, oneFileCommands } from "./restore/oneFile.ts";
import { searchCommands } from "./search/commands.ts";
import { SearchView } from "./search/view.ts";
import { branchCommands } from "./sessions/branches.ts";
import { sessionCommands } from "./sessions/commands.ts";
import { warnOfDrift } from "./sessions/drift.ts";
import { ChangeFeed, Following } from "./sessions/sessionInView.ts";
import { firstIndex, reportTrouble, StatusBar } from "./sessions/statusBar.ts";
import { SessionTree } from "./sessions/tree.ts";
import { teamCommands } from "./team/commands.ts";
import { RemotePages } from "./team/page.ts";
import { pushPreviews } from "./team/preview.ts";

let running: Server | null = null;

/** Create the views, then start the server. */
export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Codex Checkpoints", { log: true });
  const { extensionPath: folder, globalState: memory } = context;
  const seeker = { folder, storage: context.globalStorageUri.fsPath, memory, log };
  const server = new Server(seeker);
  running = server;
  const feed = new ChangeFeed(server);
  const following = new Following(server, feed);
  const tree = new SessionTree(server, feed);
  const documents = new Documents(server, feed);
  const checkpoint = new CheckpointTree(server, following);
  const views = { server, feed, following, tree, checkpoint, documents };
  const app: App = {
    ...views,
    get pages() {
      return pages;
    },
    get reports() {
      return reports;
    },
  };
  const reports = new Reports(app, context.extensionUri);
  const pages = new SessionPages(app, context.extensionUri);
  const connections = new ConnectionTree(server);
  const search = new SearchView(server);
  const restores = restorePreviews(app, context.extensionUri);
  const previews = compactionPreviews(app, context.extensionUri);
  const pushes = pushPreviews(app, context.extensionUri);
  const shared = new RemotePages(app, context.extensionUri);
  context.subscriptions.push(
    connections,
    search,
    feed,
    following,
    tree,
    documents,
    restores,
    reports,
    previews,
    pushes,
    shared,
    pages,
    checkpoint,
    new StatusBar(server, following),
    followChangedFiles(),
    showBadges(),
    ...registered(context, {
      ...serverCommands(app, seeker),
      ...sessionCommands(app),
      ...sessionPageCommands(app),
      ...searchCommands(app, search, memory),
      ...checkpointCommands(app),
      ...changeCommands(app),
      ...fileRestoreCommands(app),
      ...oneFileCommands(app),
      ...noteCommands(app),
      ...markerCommands(app),
      ...branchCommands(app),
      ...pinCommands(app),
      ...compactionCommands(app, async ({ sessionId }) => {
        previews.open("Compact", { sessionId });
      }),
      ...restoreCommands(app, restores),
      ...packCommands(app),
      ...teamCommands(app, shared, pushes),
      ...connectionCommands(app, connections),
    }),
    reportTrouble(server),
    warnOfDrift(server),
    offerCompaction(app),
    tree.view.onDidChangeSelection(({ selection: [node] }) => {
      // A row selected because its session is in view is not a choice by the user.
      const inView = following.current?.sessionId;
      if (node?.kind === "session" && node.session.sessionId !== inView) {
        following.choose(node.session);
      }
    }),
    agreeing(following, tree, pages),
    server.onDidChangeState(({ kind }) => setContext("state", kind)),
    server.onDidStart(async () => {
      await firstIndex(server);
      await warnWhenLost(app, connections);
    }),
    // Ages change with time, and a session may end without a final record.
    every(30_000, () => {
      following.look(new Set());
      tree.refresh();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      setContext("restricted", false);
      void server.restart();
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      // The trace setting is read at each request.
      const isOfTheLog = event.affectsConfiguration(`${SECTION}.trace`);
      if (event.affectsConfiguration(`${SECTION}.codexHome`)) {
        following.forget();
      }
      if (event.affectsConfiguration(SECTION) && !isOfTheLog) {
        void server.restart();
      }
    }),
  );
  // The editor's own context key for trust is false for a moment in each new window.
  setContext("restricted", !vscode.workspace.isTrusted);
  setContext("state", server.state.kind);
  void showNamed(pages, memory);
  // Not awaited, so that the editor does not wait for the server.
  void server.restart();
}

function registered({ extension }: vscode.ExtensionContext, commands: Commands) {
  const titles: { command: string }[] = extension.packageJSON.contributes.menus["view/title"];
  return Object.entries(commands).map(([name, run]) => {
    const command = `codexCheckpoints.${name}`;
    const mayLackRow = titles.some((each) => each.command === command);
    return vscode.commands.registerCommand(command, (...given: never[]) =>
      // A menu command names its row, which the editor does not know while it reloads the rows.
      // The session in view would then be the wrong one.
      given.length > 1 && given[0] === undefined && !mayLackRow
        ? inform("Nothing was done: the list was updated as you chose. Choose the command again.")
        : run(...given),
    );
  });
}

function serverCommands({ server, feed, tree, reports }: App, seeker: Seeker): Commands {
  return {
    doctor: () => reports.open("doctor"),
    openRecord: (sessionId: string, ref: string) => reports.openRecord(sessionId, ref),
    refresh: () => {
      feed.everything();
      tree.remote.refresh();
    },
    restart: () => server.restart(),
    showLog: () => server.log.show(),
    openSettings: () => openSettings("@ext:codex-checkpoints.codex-checkpoints"),
    choosePython: () => choosePython(seeker),
    chooseStateFolder: () => chooseStateFolder(),
    chooseCodex: () => chooseCodex(),
  };
}

/** Show the session in view in the list and the preview whenever it changes. */
function agreeing(following: Following, tree: SessionTree, pages: SessionPages): vscode.Disposable {
  let last: string | undefined;
  // A session that the user chose is shown wherever it is; another one opens no folder.
  const select = () =>
    following.current && tree.select(following.current.sessionId, following.isChosen);
  return vscode.Disposable.from(
    following.onDidChange(({ session }) => {
      if (session !== null && session.sessionId !== last) {
        pages.follow(session);
        select();
      }
      last = session?.sessionId;
    }),
    tree.view.onDidChangeVisibility(select),
  );
}

/** Show the session named in the environment (`make run` sets it), once per window. */
async function showNamed(pages: SessionPages, memory: vscode.Memento): Promise<void> {
  const { CODEX_CHECKPOINTS_OPEN: sessionId = "" } = process.env;
  if (sessionId === "" || memory.get("shown") === sessionId) {
    return;
  }
  pages.open("Codex Session", { sessionId });
  await memory.update("shown", sessionId);
  await runCommand("sessions.focus");
}

function every(milliseconds: number, callback: () => void): vscode.Disposable {
  const timer = setInterval(callback, milliseconds);
  return new vscode.Disposable(() => clearInterval(timer));
}

export async function deactivate(): Promise<void> {
  await running?.stop();
  // Dispose the log last and only here: the exit of the process is logged, and writing to a closed
  // log fails.
  running?.log.dispose();
}
