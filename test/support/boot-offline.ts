// What an agent that was killed serves when it is started where there is no central: on its state as it lay there.

import { readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { OfflineHost } from "./offline-host.ts";
import type { ReleaseRig } from "./release-rig.ts";
import { tempDir } from "./temp-dir.ts";
import type { Span, VersionedSite } from "./versioned-site.ts";

export type OfflineBoot = {
  /** From the start of the process to the first file. */
  readonly firstAnswerMs: number;
  /** The versions of the site that all of its files may be of; undefined: there is none. */
  readonly span: Span | undefined;
  readonly wrong: readonly string[];
};

const filesMost = 200;

/** Kills the agent of `rig` and starts another one on its state. Afterwards the state is back where it was, and nobody runs on it. */
export async function bootOffline(
  { edge }: ReleaseRig,
  site: VersionedSite,
  main?: string,
  look: (host: OfflineHost) => Promise<readonly string[]> = async () => [],
): Promise<OfflineBoot> {
  await edge.agent.kill();
  using temp = tempDir();
  const [state, moved] = [join(edge.dir, "agent"), join(temp.path, "agent")];
  renameSync(state, moved);
  const settings = readFileSync(join(edge.dir, "agent.yaml"), "utf8");
  const path = `/${site.path(0)}`;
  const boot = await OfflineHost.start(temp.path, settings, { main, path }).then(
    async (started) => {
      await using host = started;
      const { wrong, span } = await readAll(host, site);
      return { firstAnswerMs: host.firstAnswerMs, span, wrong: [...wrong, ...(await look(host))] };
    },
  );
  renameSync(moved, state);
  return boot;
}

async function readAll(
  host: OfflineHost,
  site: VersionedSite,
): Promise<Pick<OfflineBoot, "span" | "wrong">> {
  const wrong: string[] = [];
  let [from, to] = [1, Infinity];
  const step = Math.ceil(site.files / filesMost);
  for (let no = 0; no < site.files; no += step) {
    const { status, body } = await host.visit(`/${site.path(no)}`);
    const span = status === 200 ? site.spanOf(no, body.toString()) : undefined;
    if (span === undefined) wrong.push(`${site.path(no)}: ${status}, ${body.length} bytes`);
    else [from, to] = [Math.max(from, span.from), Math.min(to, span.to)];
  }
  return { span: from <= to ? { from, to } : undefined, wrong };
}
