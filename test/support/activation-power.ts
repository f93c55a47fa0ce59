// Power loss at every moment of activations: a real agent is traced from its first start over a few activations; then for each prefix of its file operations
// the disk is built anew, what was not synced is lost in several ways, and another agent starts on what is left, without central.
//
// What must hold: it starts and serves one version, whole, and none that is older than one that a visitor had been given before that moment; and over HTTPS
// a certificate that is not older than one that the customer was told was installed.
// The cache and the spool are left out: they have proofs of their own, and start empty here.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DiskModel, endings, type EndingName, type Tree } from "./disk-model.ts";
import { visit } from "./edge.ts";
import { hasEnded, readTrace, tracing, tracingEnv, type TracedOperation } from "./file-trace.ts";
import { freePorts } from "./free-ports.ts";
import { answers200, Program } from "./process.ts";
import { domain, ReleaseRig, type SiteChange } from "./release-rig.ts";
import { fingerprintOf } from "./sealed-site.ts";
import { until } from "./until.ts";
import { makeAuthority } from "./x509.ts";

/** Path → content. */
export type Version = ReadonlyMap<string, string>;
type Seen = { readonly version: number; readonly atMs: number };

export type Recording = AsyncDisposable & {
  /** Central and the maker still run. */
  readonly rig: ReleaseRig;
  readonly operations: readonly TracedOperation[];
  /** What visitors and the customer were told. */
  readonly seen: readonly Seen[];
  /** Those that the customer was told were installed, by their place among `certificates`. */
  readonly installed: readonly Seen[];
  /** Fingerprints of the certificates of the domain; the first stands for none. */
  readonly certificates: readonly string[];
  /** PEM of the authority that signed them. */
  readonly authority: string;
  readonly versions: readonly Version[];
  /** Of the traced agent. */
  readonly settings: string;
};

/** Long enough for a visitor to see what is in force while a sync is under way. */
const syncDelayMs = 25;
const sizes = [10, 3_000, 70_000];

/** Some files stay, some change, one comes and one goes with each version. */
function versionOf(no: number): Version {
  const line = (path: string, of: number): string => `${of} ${path}\n`;
  const files = sizes.flatMap((bytes, size): readonly (readonly [string, string])[] => {
    const [kept, changed] = [`kept/${size}.txt`, `changed/${size}.txt`];
    return [
      [kept, line(kept, 0).repeat(bytes / 10)],
      [changed, line(changed, no).repeat(bytes / 10)],
    ];
  });
  const own = `only-${no}.txt`;
  return new Map([...files, [own, line(own, no)]]);
}

/** What was given before it was durable shows in the disks of the first moments after it. */
const criticalEach = 4;
const marker = "changed/0.txt";

const isRecorded = (path: string): boolean =>
  !/^(?:cache|spool|lock|control\.sock)(?:\/|$)/.test(path) && !path.endsWith("-shm");

export type RecordOptions = { readonly activations: number; readonly main?: string };

/** From the agent's first start to its end, with all versions applied. */
export async function record({ activations, main }: RecordOptions): Promise<Recording> {
  await using stack = new AsyncDisposableStack();
  const rig = stack.use(await ReleaseRig.open(main === undefined ? {} : { main }));
  const { edge } = rig;
  const [tlsPort = 0] = await freePorts(1);
  const listen = `127.0.0.1:${edge.ports.visitors}`;
  const tls_listen = `127.0.0.1:${tlsPort}`;
  edge.changeAgentSettings({ accelerator: { listen, tls_listen, workers: 2 } });
  const log = join(edge.dir, "strace.log");
  const agent = stack.use(
    await Program.start(
      ["agent", "run", "--config", join(edge.dir, "agent.yaml")],
      () => answers200(`http://127.0.0.1:${edge.ports.metrics}/readyz`),
      tracingEnv,
      60_000,
      main,
      tracing(log, syncDelayMs),
    ),
  );
  const seen: Seen[] = [];
  const installed: Seen[] = [];
  const certificates = [""];
  const authority = makeAuthority();
  const done = new AbortController();
  const looking = look(edge.ports.visitors, seen, done.signal);
  looking.catch(() => undefined); // It is told where it is awaited.
  const versions: Version[] = [new Map()];
  try {
    for (let no = 1; no <= activations; no++) {
      const version = versionOf(no);
      const id = await rig.publish(`v${no}`, change(versions.at(-1), version));
      versions.push(version);
      await rig.activate(id);
      await rig.applied(id);
      seen.push({ version: no, atMs: Date.now() + 1 });
      await until(`version ${no} is seen`, () => seen.some((one) => one.version === no));
      const leaf = authority.issue({ names: [domain] });
      certificates.push(fingerprintOf(leaf.pem));
      await rig.upload(leaf);
      await rig.installed();
      installed.push({ version: no, atMs: Date.now() + 1 });
    }
  } finally {
    done.abort();
    await looking;
  }
  await agent.kill();
  await until("the trace is whole", () => hasEnded(log, agent.pid), 30_000);
  const root = join(edge.dir, "agent");
  const operations = readTrace(log, root, isRecorded);
  checkModel(operations, root);
  const owned = stack.move();
  return {
    rig,
    operations,
    seen,
    installed,
    versions,
    certificates,
    authority: authority.root.pem,
    settings: readFileSync(join(edge.dir, "agent.yaml"), "utf8"),
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

function* change(before: Version | undefined, after: Version): SiteChange & Generator {
  for (const path of before?.keys() ?? []) if (!after.has(path)) yield [path, null];
  for (const [path, content] of after) if (before?.get(path) !== content) yield [path, content];
}

/** What a visitor is answered, and when. A millisecond later than it was at most: nothing is promised too early. */
async function look(port: number, seen: Seen[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { status, body } = await visit(port, `/${marker}`, { host: domain });
    if (status !== 200) continue;
    seen.push({ version: Number(body.toString().split(" ", 1)[0]), atMs: Date.now() + 1 });
  }
}

/** A trace that misses an operation proves nothing: all of it together must give what lies on the disk. */
function checkModel(operations: readonly TracedOperation[], root: string): void {
  const disk = new DiskModel();
  for (const { operation } of operations) disk.apply(operation);
  const expected = disk.after("everything came through");
  const found = readTree(root);
  for (const path of new Set([...expected.keys(), ...found.keys()])) {
    const [one, other] = [expected.get(path), found.get(path)];
    const isSame = one === null || one === undefined || !other ? one === other : one.equals(other);
    if (!isSame) throw new Error(`the trace does not tell how ${path} came about`);
  }
}

function readTree(root: string): Tree {
  const tree = new Map<string, Buffer | null>();
  for (const path of readdirSync(root, { recursive: true, encoding: "utf8" })) {
    if (!isRecorded(path)) continue;
    const file = join(root, path);
    tree.set(path, statSync(file).isDirectory() ? null : readFileSync(file));
  }
  return tree;
}

export type Remains = {
  readonly tree: Tree;
  readonly at: number;
  readonly ending: EndingName;
  readonly promised: Promised;
};

/** The newest that somebody had been given, or told of. */
export type Promised = { readonly version: number; readonly certificate: number };

const newest = (seen: readonly Seen[], beforeMs: number): number =>
  seen.reduce((most, { version, atMs }) => (atMs < beforeMs ? Math.max(most, version) : most), 0);
const sum = ({ version, certificate }: Promised): number => version + certificate;

/** Every different disk that a power loss may leave, in order of its moment; of equal ones the one after which most had been promised. */
export function remains({ operations, seen, installed }: Recording): readonly Remains[] {
  const found = new Map<string, Remains>();
  const disk = new DiskModel();
  for (let at = 0; at <= operations.length; at++) {
    const next = operations[at];
    const nowMs = next?.endedMs ?? Number.POSITIVE_INFINITY;
    const promised = { version: newest(seen, nowMs), certificate: newest(installed, nowMs) };
    for (const ending of Object.keys(endings) as EndingName[]) {
      const tree = disk.after(ending);
      const key = keyOf(tree);
      const before = found.get(key);
      if (before === undefined || sum(before.promised) < sum(promised))
        found.set(key, { tree, at, ending, promised });
    }
    if (next !== undefined) disk.apply(next.operation);
  }
  return [...found.values()].toSorted((one, other) => one.at - other.at);
}

function keyOf(tree: Tree): string {
  const hash = createHash("sha256");
  for (const [path, content] of tree) {
    hash.update(`${path}\0${content?.length}\0`);
    if (content !== null) hash.update(content);
  }
  return hash.digest("hex");
}

/** The first moments after somebody was given a version, then others, evenly over all: `most` of them besides. */
export function chosen(all: readonly Remains[], most: number): readonly Remains[] {
  const first = new Map<number, number>();
  const critical = all.filter(({ promised }) => {
    const before = first.get(sum(promised)) ?? 0;
    first.set(sum(promised), before + 1);
    return sum(promised) > 0 && before < criticalEach;
  });
  const others = all.filter((one) => !critical.includes(one));
  const step = Math.max(1, others.length / most);
  return [
    ...critical,
    ...others.filter((_, no) => Math.floor(no / step) !== Math.floor((no - 1) / step)),
  ];
}
