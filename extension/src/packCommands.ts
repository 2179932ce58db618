/** The commands about portable packs. */

import { onSession } from "./chosenSession.ts";
import type { Commands, House } from "./house.ts";

/** Make the table of them. */
export function packCommands({ packs, following }: House): Commands {
  return {
    exportSession: onSession(following, (session) => packs.export(session)),
    importSession: () => packs.import(),
  };
}
