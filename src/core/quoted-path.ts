// A path inside a message.

const charsShown = 200;

/** Of a long path its ends: what is wrong with it must still fit into the message. */
export function quotedPath(path: string): string {
  if (path.length <= charsShown) return JSON.stringify(path);
  const half = charsShown / 2;
  return `${JSON.stringify(`${path.slice(0, half)}…${path.slice(-half)}`)} (${path.length} characters)`;
}
