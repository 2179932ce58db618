/** Where a file of a checkpoint lies. The names come from a rollout and may be anything. */

/** The absolute path, or null when it must not be opened. */
export function artifactPath(cwd: string | null, uri: string): string | null {
  const isWindows = /^[A-Za-z]:[\\/]|^\\\\/.test(cwd ?? uri);
  const isAbsolute = isWindows ? /^[A-Za-z]:[\\/]/.test(uri) : uri.startsWith("/");
  if (isAbsolute) {
    return isRemote(uri) ? null : uri;
  }
  if (cwd === null || isRemote(uri) || uri.includes("\0")) {
    return null;
  }
  return `${cwd.replace(/[\\/]+$/, "")}/${uri}`;
}

/** Merely opening `\\host\share` sends the user's credentials there. */
function isRemote(uri: string): boolean {
  return /^[\\/]{2}/.test(uri) || /^[a-z][a-z0-9+.-]+:/i.test(uri);
}
