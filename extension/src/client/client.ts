/** Starts and stops the server, sends requests and reports the server's notifications. */

import type { ChildProcess } from "node:child_process";
import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  ErrorCodes,
  LanguageClient,
  ResponseError,
} from "vscode-languageclient/node";
import { end } from "./install.ts";
import { begin, forget, type Seeker, serverCommand } from "./launch.ts";
import { type ServerState, whyDown } from "./model/status.ts";
import {
  type Changed,
  ChangedNotification,
  type Methods,
  type Strayed,
  StrayedNotification,
} from "./protocol.ts";
import * as settings from "./settings.ts";

/** Logs its errors only: the view and the status bar show them. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** The server ended before it answered; the request may or may not have taken effect. */
export class Unanswered extends Error {
  constructor() {
    super("The server ended before it answered.");
  }
}

/** How long running work may take to finish before the server is killed; a user's hook counts. */
const TIME_TO_END_MS = 12_000;

/** Restart limit for a server that exits unexpectedly: a number of restarts per period. */
const RESTARTS = 3;
const RESTARTS_MS = 3 * 60_000;

/** Timeout of the server's initialization. */
const TIME_TO_START_MS = 30_000;

const CUT_OFF: readonly number[] = [
  ErrorCodes.PendingResponseRejected,
  ErrorCodes.MessageWriteError,
  ErrorCodes.ConnectionInactive,
];

/** Wait until a starting server is ready for requests or has failed. */
export function answering(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (server.state.kind !== "starting") {
      resolve();
      return;
    }
    const subscription = server.onDidChangeState(({ kind }) => {
      if (kind !== "starting") {
        subscription.dispose();
        resolve();
      }
    });
  });
}

/** Like `ready`, but start a stopped server first; used when the user retries. */
export function awake(server: Server): Promise<void> {
  return whyDown(server.state) === null ? answering(server) : server.restart();
}

/** The methods of the server, without their prefix. */
export type Method = Unprefixed<keyof Methods>;
type Unprefixed<M> = M extends `checkpoints/${infer Name}` ? Name : never;

export type Asked<M extends Method> = Methods[`checkpoints/${M}`][0];
export type Answer<M extends Method> = Methods[`checkpoints/${M}`][1];

export class Server {
  readonly #stateChanged = new vscode.EventEmitter<ServerState>();
  readonly #sessionsChanged = new vscode.EventEmitter<Changed>();
  readonly #strayed = new vscode.EventEmitter<Strayed>();
  readonly #started = new vscode.EventEmitter<void>();
  readonly #left = new vscode.EventEmitter<LanguageClient>();
  readonly onDidChangeState = this.#stateChanged.event;
  /** The server answers requests; it has read no sessions yet. */
  readonly onDidStart = this.#started.event;
  readonly onDidChangeSessions = this.#sessionsChanged.event;
  /** A session edited files outside its plan; sent only if the setting asks for it. */
  readonly onDidStray = this.#strayed.event;
  readonly log: vscode.LogOutputChannel;
  readonly #seeker: Seeker;
  #state: ServerState = { kind: "starting" };
  #client: LanguageClient | null = null;
  #process: ChildProcess | null = null;
  #queue: Promise<void> = Promise.resolve();
  /** Times of the restarts after unexpected exits. */
  #restarts: readonly number[] = [];

  constructor(seeker: Seeker) {
    this.#seeker = seeker;
    this.log = seeker.log;
  }

  get state(): ServerState {
    return this.#state;
  }

  /** The client while it is running. */
  get client(): LanguageClient | null {
    return this.#client?.isRunning() === true ? this.#client : null;
  }

  become(state: ServerState): void {
    if (state.kind !== this.#state.kind) {
      this.log.info(`server: ${state.kind}`);
    }
    this.#state = state;
    this.#stateChanged.fire(state);
  }

  /** Start or restart; several calls run one after the other. */
  restart(): Promise<void> {
    return this.#next(async () => {
      // Announced before the old one ends, so that requests wait for the new one.
      this.become({ kind: "starting" });
      await this.#stop();
      await this.#start();
    });
  }

  stop(): Promise<void> {
    return this.#next(() => this.#stop());
  }

  /** Run after the earlier calls, whether they worked or failed. */
  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {}); // the caller gets the error
    return done;
  }

  /** Send a request, if need be after the start; rejects with `Unanswered` if the server ends. */
  async request<M extends Method>(
    method: M,
    params: Asked<M>,
    token?: vscode.CancellationToken,
  ): Promise<Answer<M>> {
    await answering(this);
    const client = this.client;
    if (client === null) {
      throw new Error(whyDown(this.#state) ?? "The server is not running.");
    }
    const began = performance.now();
    let outcome = "failed";
    // A stopped client never settles its open requests.
    let leaves: vscode.Disposable | undefined;
    const left = new Promise<never>((_, reject) => {
      leaves = this.#left.event((which) => which === client && reject(new Unanswered()));
    });
    try {
      // An `undefined` token would be sent as a second parameter.
      const rest = token === undefined ? [] : [token];
      const asked = client.sendRequest<Answer<M>>(`checkpoints/${method}`, params, ...rest);
      const answer = await Promise.race([asked, left]);
      outcome = "answered";
      return answer;
    } catch (error) {
      const isCutOff = error instanceof ResponseError && CUT_OFF.includes(error.code);
      throw isCutOff ? new Unanswered() : error;
    } finally {
      leaves?.dispose();
      const line = `checkpoints/${method} ${outcome} after ${Math.round(performance.now() - began)} ms`;
      settings.isTracing() ? this.log.info(line) : this.log.debug(line);
    }
  }

  /** Start; if the remembered interpreter fails, search once more. */
  async #start(mayLookAgain = true): Promise<void> {
    try {
      const command = await serverCommand(this.#seeker);
      if (typeof command === "string") {
        this.become({ kind: "noPython", reason: command });
        return;
      }
      const child = await begin(command, this.#seeker);
      this.#process = child;
      this.#client = this.#clientOf(child);
      // The start rejects only when the process ends.
      const late = setTimeout(() => void end(child), TIME_TO_START_MS);
      await this.#client.start().finally(() => clearTimeout(late));
      this.become({ kind: "indexing", percent: null });
      this.#started.fire();
    } catch (error) {
      this.log.error(`server did not start: ${error instanceof Error ? error.message : error}`);
      await this.#stop();
      if (mayLookAgain && (await forget(this.#seeker))) {
        await this.#start(false);
        return;
      }
      const reason =
        settings.serverCommand() === null
          ? "Codex Checkpoints could not start its server."
          : `The command in the setting codexCheckpoints.server.command did not start.`;
      this.become({ kind: "failed", reason });
    }
  }

  #clientOf(child: ChildProcess): LanguageClient {
    const client = new QuietClient(
      settings.SECTION,
      "Codex Checkpoints",
      () => Promise.resolve(child),
      {
        outputChannel: this.log,
        initializationOptions: settings.initializationOptions,
        initializationFailedHandler: () => false,
        errorHandler: {
          error: () => ({ action: ErrorAction.Continue, handled: true }),
          closed: () => {
            this.#gone(child);
            // The client's own message says that the server is not started again.
            const message = "The connection to the server was closed.";
            return { action: CloseAction.DoNotRestart, message, handled: true };
          },
        },
        stdioOptions: { stdout: () => {}, stderr: () => {} },
      },
    );
    client.onNotification(ChangedNotification.method, (changed: Changed) =>
      this.#sessionsChanged.fire(changed),
    );
    client.onNotification(StrayedNotification.method, (strayed: Strayed) =>
      this.#strayed.fire(strayed),
    );
    return client;
  }

  /** Restart after an unexpected exit, unless the restart limit is reached. */
  #gone(child: ChildProcess): void {
    if (this.#process !== child || this.#state.kind === "starting") {
      return;
    }
    this.#client = null;
    this.#process = null;
    const now = Date.now();
    this.#restarts = this.#restarts.filter((at) => now - at < RESTARTS_MS);
    if (this.#restarts.length < RESTARTS) {
      this.#restarts = [...this.#restarts, now];
      this.log.warn("server: ended by itself, starting again");
      void this.restart();
    } else {
      this.become({ kind: "stopped" });
    }
  }

  async #stop(): Promise<void> {
    const [client, child] = [this.#client, this.#process];
    this.#client = null;
    this.#process = null;
    try {
      await client?.stop(TIME_TO_END_MS);
    } catch {
      // It failed to start, or has ended.
    }
    if (client !== null) {
      this.#left.fire(client);
    }
    if (child !== null) {
      await end(child); // the client only ends processes that it started itself
    }
  }
}
