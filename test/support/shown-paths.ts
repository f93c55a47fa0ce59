// What a page of request logs shows, by path.

export function shownPaths(logs: string): readonly string[] {
  const lines: readonly unknown[] = JSON.parse(logs);
  return lines.map((line) => String(Object(line).uri_path));
}
