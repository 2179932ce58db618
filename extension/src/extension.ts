import * as vscode from "vscode";
import type { App, Commands } from "./app.ts";
import { branchCommands } from "./branches.ts";
import { changeCommands } from "./changes.ts";
import { CheckpointTree, checkpointCommands } from "./checkpointTree.ts";
import { chooseCodex, choosePython, chooseStateFolder } from "./choosing.ts";
import { Server } from "./client.ts";
import { compactionCommands, offerCompaction } from "./compaction.ts";
import { compactionPreviews } from "./compactionPreview.ts";
import { ConnectionTree, connectionCommands, warnWhenLost } from "./connection.ts";
import { Documents } from "./documents.ts";
import { warnOfDrift } from "./drift.ts";
import { fileRestoreCommands } from "./fileRestores.ts";
import { ChangeFeed, Following } from "./following.ts";
import type { Seeker } from "./launch.ts";
import { markerCommands } from "./markers.ts";
import { inform, runCommand } from "./messages.ts";
import { noteCommands } from "./notes.ts";
import { pinCommands } from "./pins.ts";
import { packCommands } from "./portable.ts";
import { attempt } from "./requests.ts";
import { followChangedFiles, oneFileCommands } from "./restoreOneFile.ts";
import { restoreCommands, restoreTabs } from "./restoring.ts";
import { searchCommands } from "./searching.ts";
import { SearchView } from "./searchView.ts";
import { SessionPages, sessionPageCommands } from "./sessionPage.ts";
import { sessionCommands } from "./sessions.ts";
import { SessionTree } from "./sessionTree.ts";
import { openSettings, SECTION, setContext } from "./settings.ts";
import { firstIndex, reportTrouble, StatusBar } from "./statusBar.ts";

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
  };
  const pages = new SessionPages(app, context.extensionUri);
  const connections = new ConnectionTree(server);
  const search = new SearchView(server);
  const restores = restoreTabs(app, context.extensionUri);
  const previews = compactionPreviews(app, context.extensionUri);
  context.subscriptions.push(
    connections,
    search,
    feed,
    following,
    tree,
    documents,
    restores.previews,
    restores.reports,
    previews,
    pages,
    checkpoint,
    new StatusBar(server, following),
    followChangedFiles(),
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
      ...connectionCommands(app, connections),
    }),
    reportTrouble(server),
    warnOfDrift(server),
    offerCompaction(app),
    tree.view.onDidChangeSelection(({ selection: [node] }) => {
      // A row that was selected since its session is in view is no choice of a person.
      const inView = following.current?.sessionId;
      if (node?.kind === "session" && node.session.sessionId !== inView) {
        following.choose(node.session);
      }
    }),
    agreeing(following, tree, pages),
    server.onDidChangeState(({ kind }) => setContext("state", kind)),
    server.onDidStart(async () => {
      await firstIndex(server);
      await showNamed(app, memory);
      await warnWhenLost(app, connections);
    }),
    // Ages change with time, and a session may end without a record.
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
  // The editor's own condition for it is false for a moment in each window that opens.
  setContext("restricted", !vscode.workspace.isTrusted);
  setContext("state", server.state.kind);
  // Not awaited, so that the editor does not wait for the server.
  void server.restart();
}

function registered({ extension }: vscode.ExtensionContext, commands: Commands) {
  const titles: { command: string }[] = extension.packageJSON.contributes.menus["view/title"];
  return Object.entries(commands).map(([name, run]) => {
    const command = `codexCheckpoints.${name}`;
    const mayLackRow = titles.some((each) => each.command === command);
    return vscode.commands.registerCommand(command, (...given: never[]) =>
      // A menu names its row, which the editor does not know while it asks for the rows anew:
      // the session in view would be another one.
      given.length > 1 && given[0] === undefined && !mayLackRow
        ? inform("This row has just changed. Choose the command once more.")
        : run(...given),
    );
  });
}

function serverCommands({ server, feed, documents }: App, seeker: Seeker): Commands {
  return {
    doctor: () => documents.open("doctor", null),
    answerYes: (uri?: vscode.Uri) => documents.answer(uri, true),
    answerNo: (uri?: vscode.Uri) => documents.answer(uri, false),
    refresh: () => feed.everything(),
    restart: () => server.restart(),
    showLog: () => server.log.show(),
    openSettings: () => openSettings("@ext:codex-checkpoints.codex-checkpoints"),
    choosePython: () => choosePython(seeker),
    chooseStateFolder: () => chooseStateFolder(),
    chooseCodex: () => chooseCodex(),
  };
}

/** Let the list and the preview show the session in view whenever that becomes another one. */
function agreeing(following: Following, tree: SessionTree, pages: SessionPages): vscode.Disposable {
  let last: string | undefined;
  const select = () => following.current && tree.select(following.current.sessionId);
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

/** Show the session that is named in the environment, as by `make run`; once in a window. */
async function showNamed({ server, following, pages }: App, memory: vscode.Memento): Promise<void> {
  const { CODEX_CHECKPOINTS_OPEN: sessionId = "" } = process.env;
  if (sessionId === "" || memory.get("shown") === sessionId) {
    return;
  }
  await memory.update("shown", sessionId);
  await attempt(async () => {
    const { summary } = await server.request("session", { sessionId });
    await runCommand("sessions.focus");
    following.choose(summary);
    pages.show(summary);
  });
}

function every(milliseconds: number, callback: () => void): vscode.Disposable {
  const timer = setInterval(callback, milliseconds);
  return new vscode.Disposable(() => clearInterval(timer));
}

export async function deactivate(): Promise<void> {
  await running?.stop();
  // Last, and by nobody else before: the end of the process is told there, and who writes into a
  // log that is closed fails.
  running?.log.dispose();
}
