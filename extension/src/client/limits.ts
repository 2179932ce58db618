// Written by `python -m codex_checkpoints.doors.typescript` from the server's limits.

/** As many code points as the server keeps of a name, a label, a reason. */
export const MAX_LABEL = 160;

/** As many code points as the key of a fact may have. */
export const MAX_KEY = 128;

/** As many of the user's last messages as a pack may hold. */
export const MAX_MESSAGES = 5;

/** As many as it holds unless another number is given. */
export const DEFAULT_MESSAGES = 3;

/** As many tokens as a digest may have. */
export const MAX_DIGEST = 32000;
