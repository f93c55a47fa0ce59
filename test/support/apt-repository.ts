// A signed apt repository as an operator makes and serves it: a key of gpg that nobody else has, `npm run package -- repo`, a web server on loopback.

import { execFileSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

export type AptRepository = AsyncDisposable & {
  readonly url: string;
  /** Adds the packages of a directory, and signs the index anew. */
  readonly publish: (from: string, signer?: "own" | "another") => void;
  /** From now on one byte of each file with this end of its name is another one; an empty text ends that. */
  readonly spoil: (end: string) => void;
  /** The files that were asked for, but for those of before the last call. */
  readonly asked: () => readonly string[];
};

/** Serves the directory `repository` below `dir`, with two keys of gpg beside it. */
export async function startAptRepository(dir: string): Promise<AptRepository> {
  const served = join(dir, "repository");
  const homes = { own: join(dir, "gpg"), another: join(dir, "gpg-other") };
  const gpg = (home: string, program: string, ...args: readonly string[]): void =>
    void execFileSync(program, args, { env: { ...process.env, GNUPGHOME: home }, stdio: "pipe" });
  for (const home of Object.values(homes)) {
    mkdirSync(home, { mode: 0o700 });
    const made = ["--batch", "--passphrase", "", "--quick-gen-key", address, "ed25519", "sign"];
    gpg(home, "gpg", ...made, "never");
  }
  let spoilt = "";
  let asked: string[] = [];
  const server = createServer(({ url = "/" }, response) => {
    const name = decodeURIComponent(url).replace(/^\/(?:\.\/)?/, "");
    asked.push(name);
    if (!globSync("*", { cwd: served }).includes(name)) {
      response.writeHead(404).end();
      return;
    }
    const body = readFileSync(join(served, name));
    const at = body.length >> 1;
    if (spoilt !== "" && name.endsWith(spoilt)) body.writeUInt8((body[at] ?? 0) ^ 1, at);
    response.end(body);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    publish(from, signer = "own") {
      cpSync(from, served, { recursive: true });
      const script = join(root, "scripts/package.mjs");
      gpg(homes[signer], process.execPath, script, "repo", "--out", served, "--sign", address);
    },
    spoil(end) {
      spoilt = end;
    },
    asked() {
      const names = asked;
      asked = [];
      return names;
    },
    async [Symbol.asyncDispose]() {
      // Each home has an agent that would outlive the test.
      for (const home of Object.values(homes)) gpg(home, "gpgconf", "--kill", "all");
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}

/** Both keys have this name, as two keys of one operator may. */
const address = "packages@example.test";
