// 200 kills of the agent during fills and clears, CLEAR_KILLS sets another number: what was cleared must not come back.

import { runClearKill } from "../test/support/clear-kill.ts";

const kills = Number(process.env["CLEAR_KILLS"] ?? 200);
const sayEvery = 20;

export async function run(say: (line: string) => void): Promise<void> {
  const counts = await runClearKill(kills, (so) => {
    if (so.kills % sayEvery === 0) say(`${so.kills} kills, ${so.violations.length} violations`);
  });
  const { clears, requests, hits, unanswered, violations } = counts;
  say(
    `${counts.kills} kills, ${clears} clears acknowledged, ${requests} requests answered (${hits} hits), ${unanswered} while it was dead: ${violations.length} violations`,
  );
  if (violations.length > 0) throw new Error(violations.slice(0, 20).join("\n"));
}
