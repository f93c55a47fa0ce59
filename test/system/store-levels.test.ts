// Centrals of two releases at one PostgreSQL: a newer one brings the store further under orders, and those of the release before go on, and may be started again. What would break one of
// them is not done while it works.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { storeLevel } from "../../src/central/store/engine/database.ts";
import { call, statusOf } from "../support/central-whole.ts";
import { statesOf } from "../support/clear-states.ts";
import { startLinkedAgent } from "../support/linked-agent.ts";
import { plantedName, plantedStatements } from "../support/planted-steps.ts";
import { postgresBin } from "../support/postgres-server.ts";
import { copyRelease, type CopiedStep } from "../support/release-copy.ts";
import { SeveralCentrals, type OneCentral } from "../support/several-centrals.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const bin = postgresBin();
const domain = "www.levels.example";

const adds: CopiedStep = { name: plantedName, statements: plantedStatements };
const takes: CopiedStep = {
  name: "0901-taken",
  statements: "ALTER TABLE restores DROP COLUMN detail",
  needs: plantedName,
};

/** Clears at each central all the time, with the proof of all agents that are connected. */
class Clearing implements AsyncDisposable {
  readonly #proved = new Map<string, number>();
  readonly #wrong: unknown[] = [];
  readonly #ending = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly #agents: number;

  constructor(agents: number) {
    this.#agents = agents;
  }

  at({ url }: OneCentral, token: string): void {
    this.#running.push(
      this.#run(url, token).catch((error: unknown) => void this.#wrong.push(error)),
    );
  }

  async #run(url: string, token: string): Promise<void> {
    while (!this.#ending.signal.aborted) {
      const clear = await call(url, "POST", `/clear-accelerator-cache/${domain}/?wait=30`, token, {
        url_path_patterns: ["path:a"],
      });
      const states = statesOf(clear);
      if (states.filter((state) => state === "applied").length !== this.#agents)
        throw new Error(`${url}: ${states.join(", ")}`);
      this.#proved.set(url, (this.#proved.get(url) ?? 0) + 1);
    }
  }

  /** Resolves when three more were proved at each. Throws what one failed of. */
  async more(...centrals: readonly OneCentral[]): Promise<void> {
    for (const { url } of centrals) {
      const wanted = (this.#proved.get(url) ?? 0) + 3;
      const isThere = (): boolean => (this.#proved.get(url) ?? 0) >= wanted || this.#hasFailed();
      await until(`three more at ${url}`, isThere, 120_000);
      if (this.#hasFailed()) throw this.#wrong[0];
    }
  }

  #hasFailed(): boolean {
    return this.#wrong.length > 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#running);
  }
}

async function levelsOf(several: SeveralCentrals): Promise<readonly unknown[]> {
  const rows = await several.run("SELECT level FROM centrals ORDER BY when_started");
  return rows.map((row) => Object(row)["level"]);
}

test.skipIf(bin === undefined)(
  "a release is brought to one central after the other, and back, while orders go on at all",
  { timeout: 600_000 },
  async () => {
    await using stack = new AsyncDisposableStack();
    const { path } = stack.use(tempDir());
    const mainOf = (name: string, steps: readonly CopiedStep[]): string => {
      mkdirSync(join(path, name));
      return copyRelease(join(path, name), steps);
    };
    const several = stack.use(await SeveralCentrals.start(bin ?? "", 1));
    const [before] = several.all;
    if (before === undefined) throw new Error("one was started");
    const made = await call(before.url, "POST", "/trial/", undefined, { username: "levels" });
    const token = String(made["token"]);
    const site = await call(before.url, "POST", "/deployment-site/", token, { tags: "all" });
    const body = { name: domain, link_to_deployment_sites_with_tags: "all" };
    await call(before.url, "POST", "/domain/", token, body);
    const named = { name16: String(site["name16"]), secret16: String(site["secret16"]) };
    const agents = [stack.use(startLinkedAgent(before.url, named, 1))];

    // The newer one adds to nearly every table while the one before is asked, and both go on.
    const newer = await several.add({ main: mainOf("newer", [adds]) });
    agents.push(stack.use(startLinkedAgent(newer.url, named, 2)));
    const connected = async (): Promise<unknown> =>
      until("both agents are connected, for both centrals", async () => {
        for (const { url } of [before, newer]) {
          const fleet = JSON.stringify(await call(url, "GET", "/fleet/", token));
          if (fleet.split('"link":"channel"').length - 1 !== agents.length) return false;
        }
        return true;
      });
    await connected();
    {
      await using clearing = new Clearing(agents.length);
      clearing.at(before, token);
      clearing.at(newer, token);
      await clearing.more(before, newer);
    }

    // The one before may be started again, and says on what it works.
    await before.program.terminate();
    await before.program.restart();
    await connected();
    const status = Object(await statusOf(join(several.dir, "state-0")));
    expect(status["warnings"]).toMatchObject([{ code: "store_newer", severity: "info" }]);
    {
      await using clearing = new Clearing(agents.length);
      clearing.at(before, token);
      clearing.at(newer, token);
      await clearing.more(before, newer);
    }
    const levels = await levelsOf(several);
    expect(levels).toHaveLength(2);
    expect(levels).toEqual(expect.arrayContaining([storeLevel, plantedName]));

    // A release that takes away what the one before knows waits until nobody works who needs it.
    const taking = mainOf("taking", [adds, takes]);
    const refused = await several.add({ main: taking }).catch((error: unknown) => String(error));
    expect(refused).toMatch(
      /the step 0901-taken of this release would break the central at .* \(release .*\), which works on the store/,
    );
    await agents[0]?.[Symbol.asyncDispose]();
    await before.program.terminate();
    {
      await using clearing = new Clearing(1);
      clearing.at(newer, token);
      await clearing.more(newer);
      const last = await several.add({ main: taking });
      clearing.at(last, token);
      await clearing.more(newer, last);
    }
    const again = await before.program.restart().catch((error: unknown) => String(error));
    expect(again).toMatch(/is of a newer release: its schema is at 0901-taken/);
    expect(agents.map(({ snapshots }) => snapshots())).toEqual([1, 1]);
  },
);
