// `npm run bench -- replace-kill [KILLS]`: kills of either process at every step of a hand-over, 100 of each unless another number is said, and at random moments. After each one
// somebody serves, and never have two processes had the state directory. It measures nothing.

import { setTimeout as sleep } from "node:timers/promises";
import { moments, ReplacedAgent } from "../test/support/replaced-agent.ts";

const sayEvery = 20;
/** A whole hand-over takes about as long. */
const randomMs = 4_000;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const kills = Number(args[0] ?? 100);
  await using agent = await ReplacedAgent.open();
  const { violations } = agent;
  const began = performance.now();
  for (let no = 0; no < kills; no++) {
    const moment = moments[no % moments.length] ?? "started";
    await agent.killSuccessor(moment);
    await agent.killPredecessor(moment);
    await killAtRandom(agent, no % 2 === 0);
    if ((no + 1) % sayEvery === 0) say(`${no + 1} of each, ${violations.length} violations`);
  }
  const seconds = Math.round((performance.now() - began) / 1_000);
  say(
    `${kills} successors and ${kills} predecessors killed at a step, ${kills} processes at a random moment: ${violations.length} violations; ${seconds} s`,
  );
  if (violations.length > 0) throw new Error(violations.slice(0, 20).join("\n"));
}

/** Kills one of the two a while after the hand-over was asked for, and has the unit started again where its main process has ended. */
async function killAtRandom(agent: ReplacedAgent, isSuccessor: boolean): Promise<void> {
  const { old, next } = await agent.comeTo("started");
  await sleep(Math.random() * randomMs);
  const killed = isSuccessor ? next : old;
  agent.kill(killed);
  await agent.afterKill(killed);
}
