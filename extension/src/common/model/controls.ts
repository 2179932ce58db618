/**
 * What the controls of a page do, in sentences. They are constants: every sentence about data comes
 * from the server (extension/README.md, "Rules").
 */

export const COMPACT = "Nothing is written yet. Next you choose where to continue.";
export const PUSH = "Nothing leaves before you press Push.";
export const MESSAGES = "Quoted at the end of the pack, within the size limit.";
export const DIGEST = "Quotes of the conversation up to the marker, within the size limit.";
export const REASON = "Optional. Kept with the restore.";
export const NO_FILE = "Tick at least one file.";
export const RESTRICTED = "This window is in Restricted Mode: no files are restored.";
