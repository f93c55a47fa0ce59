// HTTPS and HTTP/2 as real programs speak them: curl, nghttp2's clients, OpenSSL, and HAProxy passing visitors' TLS through with PROXY headers.

import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { freePorts } from "../../../support/free-ports.ts";
import { sayingOf, startProxy } from "../../../support/proxy-program.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { host, stateOf } from "../edge.ts";
import { askSecure, ca, installed, tableOf, visitByHttp2 } from "../secure-clients.ts";
import { openSecure, openSecureStage } from "../secure-stage.ts";
import { files, layManifest } from "../site-layout.ts";

const run = promisify(execFile);
const has = (program: string, option: string): boolean => sayingOf(program, option) !== undefined;

async function curl(port: number, dir: string, ...asked: readonly string[]): Promise<string> {
  const authority = join(dir, "ca.pem");
  writeFileSync(authority, ca);
  const to = ["--resolve", `${host}:${port}:127.0.0.1`, "--cacert", authority];
  const { stdout } = await run("curl", [
    "-sS",
    ...to,
    "-w",
    " %{http_version} %{http_code}",
    ...asked,
  ]);
  return stdout;
}

describe.skipIf(!has("curl", "--version"))("curl", () => {
  test.each([
    ["--http2", "2"],
    ["--http1.1", "1.1"],
  ])("%s is served, with ranges, uploads and large files", async (option, version) => {
    using dir = tempDir();
    const { views, blobsDir } = layManifest(dir.path, "");
    await using s = await openSecureStage((request, response) => void request.pipe(response), {
      views,
      blobsDir,
    });
    const url = `https://${host}:${s.port}`;
    const ask = async (...asked: readonly string[]): Promise<string> =>
      curl(s.port, dir.path, option, ...asked);
    expect(await ask(`${url}/big.txt`)).toBe(`${files["big.txt"]} ${version} 200`);
    expect(await ask("-r", "2-4", `${url}/data.bin`)).toBe(`234 ${version} 206`);
    expect(await ask("-d", "hello", `${url}/echo`)).toBe(`hello ${version} 200`);
    expect(await ask("-X", "DELETE", "-H", "Expect: 100-continue", "-d", "x", `${url}/echo`)).toBe(
      `x ${version} 200`,
    );
    expect(await ask("-I", `${url}/style.css`)).toMatch(/etag: /i);
  });
});

describe.skipIf(!has("h2load", "--version"))("h2load", () => {
  test("during 50 exchanges of the certificate loses no request", async () => {
    using dir = tempDir();
    const { views, blobsDir } = layManifest(dir.path, "");
    await using s = await openSecure({ views, blobsDir });
    const loading = run("h2load", [
      "-n",
      "3000",
      "-c",
      "20",
      "-m",
      "10",
      `--connect-to=127.0.0.1:${s.port}`,
      "--header",
      `:authority: ${host}`,
      `https://${host}:${s.port}/style.css`,
    ]);
    for (let n = 2; n < 52; n++) {
      const renewed = tableOf(installed());
      s.edge.publish({ ...stateOf(n, {}, views), certificates: renewed });
      expect((await askSecure(s.port, "/style.css")).text).toBe("body{}");
    }
    const { stdout } = await loading;
    expect(stdout).toMatch(/3000 succeeded, 0 failed, 0 errored, 0 timeout/);
    expect(await s.edge.registry.metrics()).not.toContain('outcome="failed"');
  }, 300_000);
});

describe.skipIf(!has("nghttp", "--version"))("nghttp", () => {
  test("fetches many files over one connection, and is told of names that nobody has", async () => {
    using dir = tempDir();
    const { views, blobsDir } = layManifest(dir.path, "");
    await using s = await openSecure({ views, blobsDir });
    const paths = ["style.css", "docs/", "data.bin", "big.txt"];
    const ask = async (named: string): Promise<string> => {
      const urls = paths.map((path) => `https://127.0.0.1:${s.port}/${path}`);
      const options = ["-ns", "--no-verify-peer", "-H", `:authority: ${named}`];
      const { stdout } = await run("nghttp", [...options, ...urls]).catch(() => ({ stdout: "" }));
      return stdout;
    };
    expect((await ask(host)).match(/ 200 +\d+K? \//g)?.length).toBe(4);
    const { records } = s.edge;
    await until("the records", () => records.length === 4);
    expect(new Set(records.map(({ connection }) => connection)).size).toBe(1);
    expect(await ask("www.example.org")).not.toContain(" 200 ");
    expect(await s.edge.registry.metrics()).toContain('handshakes_total{outcome="unknown_name"} 1');
  });
});

describe.skipIf(!has("haproxy", "-v"))("HAProxy", () => {
  test("that passes TLS through says who the visitor is, and nobody else is let in", async () => {
    await using s = await openSecure({ proxyProtocol: "required", trusted: ["127.0.0.1"] });
    const ports = await freePorts(1);
    const config = `
defaults
  mode tcp
  timeout connect 5s
  timeout client 20s
  timeout server 20s
listen edge
  bind 127.0.0.1:${ports[0]}
  server edge 127.0.0.1:${s.port} send-proxy-v2
`;
    await using _proxy = await startProxy(
      ports,
      () => config,
      (_, path) => ["haproxy", "-db", "-f", path],
    );
    await using visitor = await visitByHttp2(ports[0] ?? 0, { localAddress: "127.0.0.5" });
    expect((await visitor.ask("/")).status).toBe(404);
    expect((await askSecure(ports[0] ?? 0, "/")).status).toBe(404);
    await until("the records", () => s.edge.records.length === 2);
    expect(s.edge.records.map(({ client_ip }) => client_ip)).toEqual(["127.0.0.5", "127.0.0.1"]);
    await expect(askSecure(s.port, "/")).rejects.toThrow();
  });
});
