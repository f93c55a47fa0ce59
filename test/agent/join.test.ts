// `accel-agent join` as it is given on a host: what it writes, what it refuses, and that a join that broke off takes no
// second use of its code. Central is whole; behind TLS it has an authority that the host does not know.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import {
  createServer as createPlain,
  request as ask,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readCode, writeCode } from "../../src/wire/enrolment.ts";
import { settingsOf, start } from "../support/central-whole.ts";
import { mainFile, node } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { makeCertificate } from "../support/x509.ts";

const stack = new AsyncDisposableStack();
let dir: string;
let url: string;
let token: string;
let host: string;
let caFile: string;
let tls: { readonly url: string; lost: number };

beforeAll(async () => {
  dir = stack.use(tempDir()).path;
  caFile = join(dir, "ca.pem");
  const authority = makeCertificate({ subject: "An authority", isAuthority: true });
  writeFileSync(caFile, authority.pem);
  const central = stack.use(await start(settingsOf(join(dir, "central"), `ca_file: ${caFile}\n`)));
  url = central.url;
  tls = await tlsInFront(
    new URL(url),
    makeCertificate({ names: ["127.0.0.1"], issuer: authority }),
  );
  token = String((await call("POST", "/trial/", { username: "anna" }))["token"]);
});
afterAll(async () => stack.disposeAsync());

let hosts = 0;
/** Of the shell in which the command is given. */
let umask = "022";
beforeEach(() => {
  umask = "022";
  host = join(dir, `host-${++hosts}`);
});

/** A TLS terminator in front of central; it loses the answers of as many exchanges as `lost` says. */
async function tlsInFront(
  to: URL,
  { pem, key }: { readonly pem: string; readonly key: string },
): Promise<typeof tls> {
  const front = { url: "", lost: 0 };
  const server = createServer({ key, cert: pem }, (from: IncomingMessage, out: ServerResponse) => {
    const { method, url: path, headers } = from;
    const forwarded = ask({ host: to.hostname, port: to.port, method, path, headers }, (answer) => {
      if (path?.endsWith("/enrol") === true && front.lost-- > 0) {
        answer.resume();
        answer.once("end", () => out.destroy());
        return;
      }
      out.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(out);
    });
    from.pipe(forwarded);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  front.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return front;
}

async function call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const answer = await fetch(`${url}/presentation-api/v1${path}`, {
    method,
    headers: {
      "content-type": "application/json",
      ...(token !== undefined && { authorization: `Token ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  expect(answer.ok, `${method} ${path} ${answer.status}`).toBe(true);
  return Object(await answer.json()) as Record<string, unknown>;
}

type Site = { readonly id: number; readonly name16: string; readonly secret16: string };
const newSite = async (): Promise<Site> =>
  (await call("POST", "/deployment-site/", { tags: "" })) as Site;
const codeFor = async (site: Site, uses = 1): Promise<string> =>
  String((await call("POST", `/deployment-site/${site.id}/enrolment/`, { uses }))["code"]);
const used = async (site: Site): Promise<unknown> =>
  (
    Object.values(await call("GET", `/deployment-site/${site.id}/enrolment/`)) as { used: number }[]
  ).map((one) => one.used);

type Said = { readonly code: number; readonly out: string; readonly err: string };
/** Gives the command; `input` is its standard input. */
async function joined(input: string, ...args: readonly string[]): Promise<Said> {
  const config = ["--config", join(host, "agent.yaml")];
  const command = [node, mainFile, "agent", "join", ...config, ...args];
  const child = spawn("sh", ["-c", `umask ${umask}; exec "$@"`, "sh", ...command]);
  const said = { out: "", err: "" };
  child.stdout.on("data", (chunk: Buffer) => (said.out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (said.err += chunk.toString()));
  child.stdin.end(input);
  const [code] = (await once(child, "close")) as number[];
  return { code: code ?? -1, ...said };
}

const file = (name: string): string => readFileSync(join(host, name), "utf8");
const mode = (name: string): string => (statSync(join(host, name)).mode & 0o777).toString(8);

test("by a code: settings, secret and authority are written, and the agent's own check finds them good", async () => {
  const site = await newSite();
  const said = await joined(`${await codeFor(site)}\n`, "--central", tls.url);
  expect(said).toMatchObject({ code: 0, err: "" });
  expect(said.out).toContain(
    `deployment site ${site.id} (name16 ${site.name16}): joined at ${tls.url}`,
  );
  expect(said.out).toContain(`start it with: accel-agent run --config ${join(host, "agent.yaml")}`);
  expect(file("secret16")).toBe(`${site.secret16}\n`);
  expect(file("central-ca.pem")).toBe(readFileSync(caFile, "utf8"));
  expect([mode("secret16"), mode("central-ca.pem"), mode("agent.yaml")]).toEqual([
    "600",
    "644",
    "644",
  ]);
  expect(existsSync(join(host, "join.pending"))).toBe(false);
  expect(`${said.out}${said.err}${file("agent.yaml")}`).not.toContain(site.secret16);
  const check = spawn(node, [mainFile, "agent", "check", "--config", join(host, "agent.yaml")]);
  expect(await once(check, "close")).toEqual([0, null]);
});

test("where the umask of root's shell is 077, the agent's own user may read its settings all the same, and nobody the secret", async () => {
  umask = "077";
  expect(await joined(await codeFor(await newSite()), "--central", tls.url)).toMatchObject({
    code: 0,
  });
  expect(["", "agent.yaml", "central-ca.pem", "secret16"].map(mode)).toEqual([
    "755",
    "644",
    "644",
    "600",
  ]);
});

test("an answer that is lost on its way takes one use, in one join and over two", async () => {
  const site = await newSite();
  const code = await codeFor(site);
  tls.lost = 1;
  expect(await joined(code, "--central", tls.url)).toMatchObject({ code: 0 });
  expect(await used(site)).toEqual([1]);

  const other = await newSite();
  const text = await codeFor(other);
  host = `${host}-other`;
  tls.lost = 100;
  const lost = await joined(text, "--central", tls.url);
  tls.lost = 0;
  expect(lost).toMatchObject({ code: 1 });
  expect(lost.err).toContain("POST /agent-api/v1/enrol");
  expect(existsSync(join(host, "agent.yaml"))).toBe(false);
  expect(mode("join.pending")).toBe("600");
  // What a kill leaves behind.
  writeFileSync(join(host, "secret16.0123456789ab.tmp"), other.secret16);
  expect(await joined(text, "--central", tls.url)).toMatchObject({ code: 0 });
  expect(existsSync(join(host, "secret16.0123456789ab.tmp"))).toBe(false);
  expect(file("secret16")).toBe(`${other.secret16}\n`);
  expect(await used(other)).toEqual([1]);
}, 60_000);

test("settings that are there are completed: comments and other keys stay", async () => {
  const site = await newSite();
  mkdirSync(host);
  const before =
    '# ours\nname16: "0000000000000000" # of before\naccelerator:\n  listen: 127.0.0.1:8081 # beside nginx\n';
  writeFileSync(join(host, "agent.yaml"), before);
  expect(await joined(await codeFor(site), "--central", url)).toMatchObject({ code: 0 });
  const written = file("agent.yaml");
  expect(written).toContain("# ours\n");
  expect(written).toContain("listen: 127.0.0.1:8081 # beside nginx");
  expect(written).toMatch(new RegExp(`^name16: "?${site.name16}"? # of before$`, "m"));
  expect(written).toContain(`central_url: ${url}`);
  expect(existsSync(join(host, "central-ca.pem"))).toBe(false); // Over loopback nobody is to be trusted.
});

test("an authority of before whose file is gone is not missed where the code names one; without, it is told", async () => {
  const site = await newSite();
  mkdirSync(host);
  writeFileSync(join(host, "agent.yaml"), "central_ca_file: /no/such.pem\n");
  const code = await codeFor(site);
  const plain = await joined(code, "--central", url);
  expect([plain.code, plain.err]).toEqual([
    2,
    expect.stringContaining("central_ca_file cannot be read"),
  ]);
  expect(await used(site)).toEqual([0]);
  expect(await joined(code, "--central", tls.url)).toMatchObject({ code: 0 });
  expect(file("agent.yaml")).toContain(`central_ca_file: ${join(host, "central-ca.pem")}`);
});

test("the authority that is given comes first, then the code's, then that of the settings that are there", async () => {
  const site = await newSite();
  const read = readCode(await codeFor(site, 4));
  if (!read.ok) throw new Error(read.reason);
  const bare = writeCode(read.code, undefined); // As of a central without `ca_file`.
  const other = join(dir, "other-ca.pem");
  writeFileSync(other, makeCertificate({ subject: "Another", isAuthority: true }).pem);
  const settled = (path: string): void => {
    mkdirSync(host, { recursive: true });
    writeFileSync(join(host, "agent.yaml"), `central_ca_file: ${path}\n`);
  };
  settled(other);
  expect((await joined(bare, "--central", tls.url)).err).toMatch(/certificate|verify/);
  expect(await used(site)).toEqual([0]);
  settled(caFile);
  expect(await joined(bare, "--central", tls.url)).toMatchObject({ code: 0 });
  host = `${host}-given`;
  settled(other);
  expect(await joined(bare, "--central", tls.url, "--ca-file", caFile)).toMatchObject({ code: 0 });
  expect(file("central-ca.pem")).toBe(readFileSync(caFile, "utf8"));
  host = `${host}-secret`;
  settled(caFile);
  const secretFile = join(dir, "known-secret");
  writeFileSync(secretFile, site.secret16);
  const by = ["--name16", site.name16, "--secret-file", secretFile];
  expect(await joined("", "--central", tls.url, ...by)).toMatchObject({ code: 0 });
}, 60_000);

test("by name and secret, without a code", async () => {
  const site = await newSite();
  const secretFile = join(dir, "a-secret");
  writeFileSync(secretFile, `${site.secret16}\n`);
  const by = ["--central", tls.url, "--name16", site.name16, "--secret-file", secretFile];
  const stranger = await joined("", ...by);
  expect(stranger).toMatchObject({ code: 1 });
  expect(stranger.err).toMatch(/unable to verify|self.signed|unable to get/);
  expect(existsSync(host)).toBe(false);
  expect(await joined("", ...by, "--ca-file", caFile)).toMatchObject({ code: 0 });
  expect(file("secret16")).toBe(`${site.secret16}\n`);
  writeFileSync(secretFile, "f".repeat(32));
  host = `${host}-wrong`;
  const wrong = await joined("", ...by, "--ca-file", caFile);
  expect([wrong.code, existsSync(host)]).toEqual([1, false]);
  expect(wrong.err).toContain("the secret is not that of");
});

describe("refused, and the code is not used", () => {
  test("a host that belongs to a site already; --replace moves it", async () => {
    const [site, other] = [await newSite(), await newSite()];
    expect(await joined(await codeFor(site), "--central", url)).toMatchObject({ code: 0 });
    const code = await codeFor(other);
    const taken = await joined(code, "--central", url);
    expect([taken.code, taken.err]).toEqual([1, expect.stringContaining(site.name16)]);
    expect(taken.err).toContain("--replace");
    expect(taken.err).toContain(`this host has already joined at ${url}`);
    expect(taken.err).toContain("nothing is to be done");
    expect(await used(other)).toEqual([0]);
    expect(await joined(code, "--central", url, "--replace")).toMatchObject({
      code: 0,
      out: expect.stringContaining(`; it left the one with name16 ${site.name16}\n`),
    });
    expect(file("secret16")).toBe(`${other.secret16}\n`);
  });

  test("a host that belongs to a site, whatever a join before left behind; the code of that join goes on", async () => {
    const [site, other, third] = [await newSite(), await newSite(), await newSite()];
    expect(await joined(await codeFor(site), "--central", url)).toMatchObject({ code: 0 });
    const code = await codeFor(other);
    tls.lost = 100;
    expect(await joined(code, "--central", tls.url, "--replace")).toMatchObject({ code: 1 });
    tls.lost = 0;
    expect(existsSync(join(host, "join.pending"))).toBe(true);
    const taken = await joined(await codeFor(third), "--central", url);
    expect([taken.code, taken.err]).toEqual([1, expect.stringContaining(site.name16)]);
    expect(await used(third)).toEqual([0]);
    const secretFile = join(dir, "third-secret");
    writeFileSync(secretFile, third.secret16);
    const by = ["--central", url, "--name16", third.name16, "--secret-file", secretFile];
    expect((await joined("", ...by)).err).toContain(site.name16);
    expect(await joined(code, "--central", url)).toMatchObject({ code: 0 });
    expect(file("secret16")).toBe(`${other.secret16}\n`);
    expect(await used(other)).toEqual([1]);
    writeFileSync(join(host, "join.pending"), "of a join long ago");
    expect(await joined("", ...by, "--replace")).toMatchObject({ code: 0 });
    expect(existsSync(join(host, "join.pending"))).toBe(false);
  }, 60_000);

  test("settings with a fault of their own, and a directory that cannot be written", async () => {
    const site = await newSite();
    const code = await codeFor(site);
    mkdirSync(host);
    writeFileSync(join(host, "agent.yaml"), "log_level: loud\n");
    const said = await joined(code, "--central", url);
    expect([said.code, said.err]).toEqual([
      2,
      expect.stringMatching(/agent\.yaml:1: log_level must be one of/),
    ]);
    expect(await used(site)).toEqual([0]);
    writeFileSync(join(host, "agent.yaml"), "- a list\n");
    const list = await joined(code, "--central", url);
    expect([list.code, list.err]).toEqual([
      2,
      expect.stringContaining("must be a mapping of keys"),
    ]);
    writeFileSync(join(host, "agent.yaml"), "");
    host = join(host, "agent.yaml", "below-a-file");
    const below = await joined(code, "--central", url);
    expect([below.code, below.err]).toEqual([2, expect.stringContaining("cannot be written")]);
    expect(await used(site)).toEqual([0]);
  });

  test("a central with another authority than the code names", async () => {
    const site = await newSite();
    const code = await codeFor(site);
    const right = readFileSync(caFile, "utf8");
    writeFileSync(caFile, makeCertificate({ subject: "Another", isAuthority: true }).pem);
    const said = await joined(code, "--central", tls.url);
    writeFileSync(caFile, right);
    expect([said.code, said.err]).toEqual([
      1,
      expect.stringContaining("not the one that the code names"),
    ]);
    expect(await used(site)).toEqual([0]);
  });

  test.each([
    [["enrol1_00"], "a code is no argument"],
    [["--central", "http://central.example.com"], "must be https outside loopback"],
    [[], "--central takes central's address"],
    [
      ["--central", "http://127.0.0.1:1", "--secret-file", "/x"],
      "--secret-file goes with --name16",
    ],
    [
      ["--central", "http://127.0.0.1:1", "--name16", "0123456789abcdef"],
      "--name16 goes with --secret-file",
    ],
    [["--central", "http://127.0.0.1:1", "--code-file", "/no/such"], "--code-file cannot be read"],
    [
      ["--central", "http://127.0.0.1:1", "--name16", "0123456789abcdef", "--code-file", "/x"],
      "--code-file and --name16 do not go together",
    ],
    [
      ["--central", "http://127.0.0.1:1", "--name16", "0123456789ABCDEF", "--secret-file", "/x"],
      "--name16 takes 16 lower-case hex characters",
    ],
    [["--central", "http://127.0.0.1:1"], "no code on standard input"],
  ])("%j", async (args, words) => {
    const said = await joined("", ...args);
    expect([said.code, said.err]).toEqual([2, expect.stringContaining(words)]);
    expect(existsSync(host)).toBe(false);
  });

  test("a central of an earlier release, which asks for a token whatever the path", async () => {
    const server = createPlain((_, out) => {
      out.writeHead(401, { "content-type": "application/json" });
      out.end('{"code":"expired_token","message":"no token"}');
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    stack.defer(() => void server.close());
    const old = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const said = await joined(await codeFor(await newSite()), "--central", old);
    expect([said.code, said.err]).toEqual([1, expect.stringContaining("knows no codes")]);
  });

  test("a central that is down behind its proxy, and an address where nobody is: the code is not blamed", async () => {
    const proxy = createPlain((_, out) => out.writeHead(502).end("<html>"));
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const site = await newSite();
    const code = await codeFor(site);
    const front = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const down = await joined(code, "--central", front);
    expect([down.code, down.err]).toEqual([
      1,
      expect.stringMatching(
        /answered 502[\s\S]*does not answer now[\s\S]*join again, with the same/,
      ),
    ]);
    proxy.close();
    await once(proxy, "close");
    const nobody = await joined(code, "--central", front);
    expect([nobody.code, nobody.err]).toEqual([
      1,
      expect.stringMatching(/ECONNREFUSED[\s\S]*the address after --central[\s\S]*with the same/),
    ]);
    expect(down.err + nobody.err).not.toMatch(/central_url|goes on serving|another code/);
    expect(await joined(code, "--central", url)).toMatchObject({ code: 0 });
  }, 60_000);

  test("a code that is mistyped, and one that is used up", async () => {
    const site = await newSite();
    const code = await codeFor(site);
    const cut = await joined(code.slice(0, -1), "--central", url);
    expect([cut.code, cut.err]).toEqual([2, expect.stringContaining("cut short or mistyped")]);
    expect(await joined(code, "--central", url)).toMatchObject({ code: 0 });
    host = `${host}-second`;
    const second = await joined(code, "--central", url);
    expect([second.code, second.err]).toEqual([
      1,
      expect.stringContaining("was used by as many hosts as it is for"),
    ]);
    expect(second.err).toContain("site enrol");
  });
});
