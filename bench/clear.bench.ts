// A clear as a customer has it: from the call to the answer with the receipt, against a call that does nothing at the agent.

import { Edge } from "../test/support/edge.ts";
import { CustomerScript, domain } from "../test/support/customer-script.ts";
import { inParallel } from "../test/support/demo.ts";
import { startOrigin } from "../test/support/origin.ts";

const rounds = 10;

async function medianMs(
  action: () => Promise<unknown>,
  prepare: () => Promise<unknown>,
): Promise<number> {
  const took: number[] = [];
  for (let i = 0; i < rounds; i++) {
    await prepare();
    const began = performance.now();
    await action();
    took.push(performance.now() - began);
  }
  return took.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0;
}

export async function run(say: (line: string) => void): Promise<void> {
  await using origin = await startOrigin();
  await using edge = await Edge.prepare();
  await edge.startCentral();
  const script = new CustomerScript(edge, origin.url, "bench");
  await script.enrol();
  await edge.startAgent();
  for (const { run: step } of script.steps().slice(0, 2)) await step();
  const nothing = await medianMs(
    () => edge.api.get("/domain/"),
    async () => undefined,
  );
  say(`${"a call that reads".padEnd(34)} ${nothing.toFixed(1)} ms`);
  for (const entries of [1, 100, 1_000]) {
    const paths = Array.from({ length: entries }, (_, i) => `/page/bench${i}`);
    const fill = (): Promise<void> =>
      inParallel(paths, 16, async (path) => void (await edge.visit(path, { host: domain })));
    const clear = (): Promise<unknown> =>
      edge.api.post(`/clear-accelerator-cache/${domain}/`, { url_path_patterns: ["path:bench*"] });
    const ms = await medianMs(clear, fill);
    say(
      `${`a clear of ${entries} entries, receipted`.padEnd(34)} ${ms.toFixed(1)} ms  ${(ms / nothing).toFixed(1)} × a call that reads`,
    );
  }
}
