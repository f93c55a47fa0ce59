// Agents started on what a power loss left: do they serve a version, whole, and none older than one that somebody had been given?

import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Bug } from "./activation-bugs.ts";
import {
  chosen,
  record,
  remains,
  type Recording,
  type Remains,
  type Version,
} from "./activation-power.ts";
import { builtTree } from "./built-tree.ts";
import { inParallel } from "./demo.ts";
import { writeTree } from "./disk-model.ts";
import { OfflineHost } from "./offline-host.ts";
import { domain } from "./release-rig.ts";
import { servedFor } from "./served-certificate.ts";
import { tempDir } from "./temp-dir.ts";
import { until } from "./until.ts";

export type Verdict = {
  readonly what: string;
  /** Undefined: nothing. */
  readonly wrong: string | undefined;
  readonly version: number | undefined;
  /** From the start of the process to the first answer. */
  readonly firstAnswerMs: number;
};

const startsAtATime = 2;

/** Starts an agent on each of them; `isEnough` ends it before the last. */
export async function judgeAll(
  recording: Recording,
  all: readonly Remains[],
  onVerdict: (verdict: Verdict) => void,
  { main, isEnough = () => false }: { main?: string; isEnough?: () => boolean } = {},
): Promise<void> {
  await inParallel(all, startsAtATime, async (one) => {
    if (!isEnough()) onVerdict(await judge(recording, one, main));
  });
}

/** Plants it and looks on the disks of two activations, `most` beside the critical ones; what gives it away first, and after how many starts. */
export async function search(
  { patch }: Bug,
  most: number,
): Promise<{ readonly found: string | undefined; readonly starts: number }> {
  using tree = builtTree([patch]);
  const { main } = tree;
  await using recording = await record({ activations: 2, main });
  let found: string | undefined;
  let starts = 0;
  const onVerdict = ({ wrong }: Verdict): void => {
    starts++;
    found ??= wrong;
  };
  const isEnough = (): boolean => found !== undefined;
  await judgeAll(recording, chosen(remains(recording), most), onVerdict, { main, isEnough });
  return { found, starts };
}

async function judge(
  { versions, settings, certificates, authority }: Recording,
  { tree, at, ending, promised }: Remains,
  main: string | undefined,
): Promise<Verdict> {
  const what = `before operation ${at}, ${ending}, version ${promised.version} and certificate ${promised.certificate} promised`;
  using temp = tempDir();
  writeTree(join(temp.path, "agent"), tree);
  const verdict = (wrong: string | undefined, more: Partial<Verdict> = {}): Verdict => ({
    what,
    wrong: wrong === undefined ? undefined : `${what}: ${wrong}`,
    version: undefined,
    firstAnswerMs: 0,
    ...more,
  });
  try {
    await using host = await OfflineHost.start(temp.path, settings, { main });
    const { firstAnswerMs } = host;
    const paths = new Set(versions.flatMap((version) => [...version.keys()]));
    const answers = new Map<string, string | number>();
    for (const path of paths) {
      const { status, body } = await host.visit(`/${path}`);
      answers.set(path, status === 200 ? body.toString() : status);
    }
    const version = versions.findIndex((one, no) => isServed(one, no, answers));
    if (version === -1) return verdict(`no whole version: ${shown(answers)}`, { firstAnswerMs });
    if (version < promised.version)
      return verdict(`version ${version}`, { version, firstAnswerMs });
    const served = await servedFor(host.tlsPort, domain, authority).catch(() => "");
    const certificate = certificates.indexOf(served);
    if (certificate < promised.certificate)
      return verdict(`certificate ${certificate}`, { version, firstAnswerMs });
    return verdict(undefined, { version, firstAnswerMs });
  } catch (error) {
    return verdict(error instanceof Error ? error.message.slice(0, 4_000) : String(error));
  }
}

/** What the version has with its content, what it has not is not found. Before the first one the domain is not known here or has nothing to serve. */
function isServed(
  version: Version,
  no: number,
  answers: ReadonlyMap<string, string | number>,
): boolean {
  const lacking = no === 0 ? [421, 503] : [404];
  return [...answers].every(([path, answer]) => {
    const content = version.get(path);
    return content === undefined ? lacking.includes(Number(answer)) : answer === content;
  });
}

const shown = (answers: ReadonlyMap<string, string | number>): string =>
  [...answers]
    .map(([path, answer]) => `${path} ${String(answer).slice(0, 12).split("\n", 1)[0]}`)
    .join(", ");

/** Started on what is left, with central there: it comes to the newest version by itself. */
export async function resume(
  { rig, versions }: Recording,
  { tree }: Remains,
  main?: string,
): Promise<void> {
  const { edge } = rig;
  rmSync(join(edge.dir, "agent"), { recursive: true });
  writeTree(join(edge.dir, "agent"), tree);
  await edge.startAgent(main);
  try {
    for (const [path, content] of versions.at(-1) ?? []) {
      await until(`the newest ${path}`, async () => {
        const { status, body } = await edge.visit(`/${path}`, { host: domain });
        return status === 200 && body.toString() === content;
      });
    }
  } finally {
    await edge.agent.kill();
  }
}
