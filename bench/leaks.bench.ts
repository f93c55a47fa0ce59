// `LEAK_ANSWERS=1000000 LEAK_SEED=1 npm run bench -- leaks`: random applications, whose answers random visitors ask for through a real agent, under random rules and presets
// that change meanwhile. An oracle that knows of each byte whom it was made for looks at each answer. It ends with an error if anything reached somebody whom it was not for.

import { huntLeaks, type LeakResult, type Tally } from "../test/support/leaks-run.ts";

const answersDefault = 1_000_000;

export async function run(say: (line: string) => void): Promise<void> {
  const answers = Number(process.env["LEAK_ANSWERS"] ?? answersDefault);
  const seed = Number(process.env["LEAK_SEED"] ?? 1);
  const result = await huntLeaks({ answers, seed }, say);
  for (const line of report(result)) say(line);
  if (result.leaks.length + result.mangled.length > 0)
    throw new Error("answers reached visitors whom they were not for, or came mangled");
}

function report(result: LeakResult): readonly string[] {
  const { byKind, seconds, leaks, mangled } = result;
  const all: Tally = { requests: 0, hits: 0, best: 0, beyond: 0, collapsed: 0 };
  for (const tally of byKind.values())
    for (const key of ["requests", "hits", "best", "beyond", "collapsed"] as const)
      all[key] += tally[key];
  return [
    `${result.answers} answers of ${result.applications} applications in ${Math.round(seconds)} s (${Math.round(result.answers / seconds)} a second), ${result.originAnswers} made by the origin; ${result.editions} editions of rules, ${result.clears} clears; ${result.unanswered} without an answer`,
    `leaks: ${leaks.length}; mangled: ${mangled.length}`,
    ...[...byKind, ["all", all] as const].map(([kind, tally]) => `${kind}: ${ratios(tally)}`),
  ];
}

function ratios({ requests, hits, best, beyond, collapsed }: Tally): string {
  const percent = (count: number): string =>
    `${((100 * count) / Math.max(1, requests)).toFixed(1)} %`;
  return `hit ratio ${percent(hits)}, the best that the oracle allows ${percent(best)}; collapsed ${percent(collapsed)}; ${requests} requests, ${beyond} hits beyond the best`;
}
