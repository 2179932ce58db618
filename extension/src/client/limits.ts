// Written by `python -m codex_checkpoints.doors.typescript` from the server's limits.

/** Maximum code points of a name, a label or a reason; the server cuts longer ones. */
export const MAX_LABEL = 160;

/** Maximum code points of a fact's key. */
export const MAX_KEY = 128;

/** Maximum number of the user's last messages in a pack. */
export const MAX_MESSAGES = 5;

/** Default number of the user's last messages in a pack. */
export const DEFAULT_MESSAGES = 3;

/** Maximum number of tokens in a digest. */
export const MAX_DIGEST = 32000;
