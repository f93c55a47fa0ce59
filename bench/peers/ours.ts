// Our agent beside the others: the real programs, one domain, its backend the comparison's origin; cleared by the operator's socket and by the customer's API.

import { join } from "node:path";
import { callControl } from "../../src/base/control-socket.ts";
import { everything, exactUrl, under } from "../../src/core/patterns/pattern-recipes.ts";
import { CustomerScript, domain } from "../../test/support/customer-script.ts";
import { Edge } from "../../test/support/edge.ts";
import type { Command, Peer, Way } from "./peer.ts";

export const ours: Peer = {
  name: "accel-agent",
  find: () => ({ version: "of this tree" }),
  async start(originPort) {
    const edge = await Edge.prepare();
    try {
      await edge.startCentral();
      const script = new CustomerScript(edge, `http://127.0.0.1:${originPort}`, "compare");
      await script.enrol();
      await edge.startAgent();
      for (const { run } of script.steps().slice(0, 2)) await run(); // The domain, and its devlove active.
    } catch (error) {
      await edge[Symbol.asyncDispose]();
      throw error;
    }
    return {
      url: `http://127.0.0.1:${edge.ports.visitors}`,
      host: domain,
      ways: [
        wayOf("ours, on the host", (pattern) => clearOnHost(edge, pattern)),
        wayOf("ours, customer API", (pattern) => clearByApi(edge, pattern)),
      ],
      [Symbol.asyncDispose]: () => edge[Symbol.asyncDispose](),
    };
  },
};

function wayOf(name: string, clear: (pattern: string) => Promise<void>): Way {
  const by = (pattern: (target: string) => string): Command => ({
    by: "pattern",
    run: (target) => clear(pattern(target)),
  });
  return { name, one: by(exactUrl), under: by(under), all: by(() => everything) };
}

async function clearOnHost(edge: Edge, pattern: string): Promise<void> {
  const socket = join(edge.dir, "agent", "control.sock");
  const signal = AbortSignal.timeout(60_000);
  const parameters = { domain, patterns: [pattern] };
  for await (const answer of callControl(socket, "cache-clear", parameters, signal))
    if (answer === null) throw new Error("no receipt");
}

async function clearByApi(edge: Edge, pattern: string): Promise<void> {
  const { status } = await edge.api.post(`/clear-accelerator-cache/${domain}/?wait=30`, {
    url_path_patterns: [pattern],
  });
  if (status !== 200) throw new Error(`the clear was answered ${status}`);
}
