// Which folder's mutants count for which area; what has no area of its own is base's. The demo is not mutated: it is a stage, judged by what runs on it.

/** Longest prefix first wins: files that stand in a program's folder itself are its roots. */
const folders: Readonly<Record<string, readonly string[]>> = {
  core: ["src/core/"],
  base: ["src/", "src/base/", "src/agent/settings/", "src/central/settings/"],
  wire: ["src/wire/", "src/client/"],
  accelerator: ["src/agent/accelerator/"],
  requests: ["src/agent/requests/"],
  cache: ["src/agent/cache/"],
  link: ["src/agent/link/", "src/agent/admin/"],
  bots: ["src/agent/bots/"],
  viewset: ["src/agent/viewset/"],
  steering: ["src/agent/steering/", "src/agent/vault/", "src/agent/"],
  store: ["src/central/store/", "src/central/backup/", "src/central/jobs/"],
  api: ["src/central/api/", "src/central/agents/", "src/central/mail/", "src/central/", "src/cli/"],
};

export const areas: readonly string[] = Object.keys(folders);

/** Undefined: not mutated. */
export function areaOf(file: string): string | undefined {
  if (file.startsWith("src/demo/")) return undefined;
  let best: { readonly area: string; readonly length: number } | undefined;
  for (const [area, prefixes] of Object.entries(folders))
    for (const prefix of prefixes)
      if (file.startsWith(prefix) && prefix.length > (best?.length ?? 0))
        best = { area, length: prefix.length };
  return best?.area;
}

export function foldersOf(area: string): string {
  return (folders[area] ?? []).join(" ");
}
