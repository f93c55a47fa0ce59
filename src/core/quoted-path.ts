// Writes a path inside a message.

const charsShown = 200;

/**
 * Quotes a path for a message. A long path is shortened to its ends, so that the message also has room for
 * what is wrong with it.
 */
export function quotedPath(path: string): string {
  if (path.length <= charsShown) return JSON.stringify(path);
  const half = charsShown / 2;
  return `${JSON.stringify(`${path.slice(0, half)}…${path.slice(-half)}`)} (${path.length} characters)`;
}
