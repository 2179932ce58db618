/** What the commands are made of: the parts they work with, and the shape of their tables. */

import type { BranchDesk } from "./branching.ts";
import type { ChangeFeed } from "./changes.ts";
import type { Server } from "./client.ts";
import type { CompactionDesk } from "./compacting.ts";
import type { ConnectionDesk } from "./connecting.ts";
import type { ConnectionTree } from "./connectionTree.ts";
import type { Documents } from "./documents.ts";
import type { Following } from "./following.ts";
import type { MarkerDesk } from "./marking.ts";
import type { NoteDesk } from "./notes.ts";
import type { PinDesk } from "./pinning.ts";
import type { PackDesk } from "./portable.ts";
import type { RestoreDesk } from "./restoring.ts";
import type { ResumeDesk } from "./resuming.ts";
import type { SessionDesk } from "./sessionDesk.ts";
import type { SessionTree } from "./sessionTree.ts";

/** What commands work with. */
export interface House {
  readonly server: Server;
  readonly feed: ChangeFeed;
  readonly tree: SessionTree;
  readonly following: Following;
  readonly documents: Documents;
  readonly notes: NoteDesk;
  readonly sessions: SessionDesk;
  readonly compaction: CompactionDesk;
  readonly resuming: ResumeDesk;
  readonly connection: ConnectionDesk;
  readonly connections: ConnectionTree;
  readonly markers: MarkerDesk;
  readonly branches: BranchDesk;
  readonly pins: PinDesk;
  readonly restores: RestoreDesk;
  readonly packs: PackDesk;
}

/** Commands by their names in package.json, without the prefix. */
export type Commands = Record<string, (...args: never[]) => unknown>;
