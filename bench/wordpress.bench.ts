// A real WordPress for visitors without a login: alone, behind nginx with proxy_cache, behind Varnish, and behind the edge, in one run. Each visitor has cookies
// of his own, and WordPress prints what cookies it is told: pages with a cookie of somebody else are counted.
//
//   npm run bench -- wordpress [--visits N]

import { Agent } from "node:http";
import { parseArgs } from "node:util";
import { browser, visit } from "../test/support/edge.ts";
import { wordpressDevlove } from "../test/support/wordpress/guide.ts";
import { publishAll } from "../test/support/wordpress/publishing.ts";
import { startScene, Visitor, type Scene } from "../test/support/wordpress/scene.ts";
import { wordpressMissing } from "../test/support/wordpress/wordpress.ts";
import { findVersion, PeerGround } from "./peers/peer.ts";
import { cpuOf, cpuSince } from "./serving/cpu.ts";

const visitorsCount = 8;
const pages = ["/", "/sample-page/", "/author/chief/", "/category/uncategorized/"];
for (let no = 1; no <= 30; no++) pages.push(`/post-${no}/`);

type Front = { readonly name: string; readonly port: number; readonly pids: readonly number[] };

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  if (wordpressMissing.length > 0) throw new Error(`needs ${wordpressMissing.join(", ")}`);
  const { values } = parseArgs({
    args: [...args],
    options: { visits: { type: "string", default: "4000" } },
  });
  await using stack = new AsyncDisposableStack();
  const scene = stack.use(await startScene(wordpressDevlove()));
  scene.usePlugin();
  const { wordpress, edge, host } = scene;
  const fronts: Front[] = [
    { name: "alone", port: wordpress.port, pids: [] },
    { name: "accel-agent", port: edge.ports.visitors, pids: [edge.agent.pid] },
  ];
  for (const start of [startNginx, startVarnish]) {
    const front = await start(wordpress.port, stack);
    if (front === undefined) say(`${start.name.slice(5)} is not installed`);
    else fronts.push(front);
  }
  say("front         requests/s  front µs/request  WordPress µs/request  asked WordPress  foreign");
  for (const front of fronts) {
    const count = front.pids.length === 0 ? Number(values.visits) / 10 : Number(values.visits);
    const hot = front.pids.length > 0;
    if (hot) await visitAll(front.port, host, pages.length * 2);
    const askedBefore = wordpress.phpRequests().length;
    const before = [...front.pids, ...wordpress.pids].map((pid) => [pid, cpuOf(pid)] as const);
    const start = performance.now();
    const foreign = await visitAll(front.port, host, count);
    const seconds = (performance.now() - start) / 1_000;
    const us = (pids: readonly number[]): number =>
      before
        .filter(([pid]) => pids.includes(pid))
        .reduce((sum, [pid, then]) => sum + cpuSince(then, pid), 0) / count;
    const asked = wordpress.phpRequests().length - askedBefore;
    say(
      [
        front.name.padEnd(12),
        (count / seconds).toFixed(0).padStart(11),
        us(front.pids).toFixed(0).padStart(17),
        us(wordpress.pids).toFixed(0).padStart(21),
        `${((asked / count) * 100).toFixed(1)} %`.padStart(16),
        String(foreign).padStart(8),
      ].join(" "),
    );
  }
  await publish(scene, say);
}

/** Changes are to be seen by all within a second of the answer to the editor. */
async function publish(scene: Scene, say: (line: string) => void): Promise<void> {
  const leaks: string[] = [];
  const visitor = (name: string): Visitor => new Visitor(name, scene, leaks);
  const editor = visitor("editor");
  await editor.logIn("the-editor", "correct horse battery");
  const readers = Array.from({ length: visitorsCount }, (_, no) =>
    visitor(`reader${no}`).carry("_ga").carry("CookieConsent").carry("xtrk_42"),
  );
  const delays = await publishAll(scene.wordpress, editor, visitor("commenter"), readers);
  for (const { what, ms } of delays)
    say(`${what}: seen by ${visitorsCount} after ${ms.toFixed(0)} ms`);
  say(`pages with something of another visitor: ${leaks.length}`);
  const slow = delays.filter(({ ms }) => ms > 1_000);
  if (leaks.length > 0 || slow.length > 0) throw new Error("a leak, or a change seen too late");
}

/** Returns how many pages had a cookie of another visitor. */
async function visitAll(port: number, host: string, count: number): Promise<number> {
  let foreign = 0;
  let no = 0;
  const one = async (visitor: number): Promise<void> => {
    using agent = disposable(new Agent({ keepAlive: true, maxSockets: 1 }));
    const own = `canary-${visitor}-`;
    const cookie = `_ga=${own}ga; CookieConsent=${own}consent; xtrk_42=${own}xtrk`;
    while (no < count) {
      const page = pages[no++ % pages.length] ?? "/";
      const options = { host, userAgent: browser, headers: { cookie }, agent: agent.value };
      const { status, body } = await visit(port, page, options);
      if (status !== 200) throw new Error(`${page} answered ${status}`);
      const text = body.toString("latin1").replaceAll(own, "");
      if (/canary-\d/.test(text)) foreign++;
    }
  };
  await Promise.all(Array.from({ length: visitorsCount }, (_, visitor) => one(visitor)));
  return foreign;
}

function disposable(value: Agent): Disposable & { readonly value: Agent } {
  return { value, [Symbol.dispose]: () => value.destroy() };
}

async function startNginx(
  originPort: number,
  stack: AsyncDisposableStack,
): Promise<Front | undefined> {
  if ("missing" in findVersion(["nginx", "-v"], /nginx\/([\d.]+)/)) return undefined;
  const ground = stack.use(await PeerGround.open(originPort));
  const config = ground.write("../wordpress/nginx.conf", "nginx.conf");
  await ground.run(["nginx", "-p", ground.dir, "-c", config]);
  return { name: "nginx", port: ground.port, pids: [ground.pid] };
}

async function startVarnish(
  originPort: number,
  stack: AsyncDisposableStack,
): Promise<Front | undefined> {
  if ("missing" in findVersion(["varnishd", "-V"], /varnish-([\d.]+)/)) return undefined;
  const ground = stack.use(await PeerGround.open(originPort));
  const vcl = ground.write("../wordpress/varnish.vcl", "varnish.vcl");
  const where = ["-n", ground.makeDir("work"), "-a", `127.0.0.1:${ground.port}`, "-T", "none"];
  const storage = ["-s", "malloc,256M"];
  await ground.run(["varnishd", "-F", "-j", "none", "-f", vcl, ...where, ...storage]);
  return { name: "varnish", port: ground.port, pids: [ground.pid] };
}
