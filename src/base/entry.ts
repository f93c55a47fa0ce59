// Finds the entry file of a thread or process beside the file that starts it: `.ts` when run from source, `.js` in `dist`, where all files lie in one directory.

/** Returns the URL of the entry: `entryUrl(import.meta.url, "./worker")`. */
export function entryUrl(from: string, name: string): URL {
  return new URL(`${name}${from.endsWith(".ts") ? ".ts" : ".js"}`, from);
}
