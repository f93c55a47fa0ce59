// Operator commands over the unix socket: private, faults with their code, streams, bounds.

import { once } from "node:events";
import { statSync } from "node:fs";
import { createServer as createHttpServer, request } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  askControl,
  callControl,
  controlFault,
  refuseSilent,
  startControlSocket,
  type ControlRoutes,
} from "../../src/base/control-socket.ts";
import { AccelError } from "../../src/core/faults.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const never = new AbortController().signal;

async function collect(
  path: string,
  command: string,
  parameters: unknown = {},
): Promise<unknown[]> {
  return Array.fromAsync(callControl(path, command, parameters, never));
}

async function withSocket(
  routes: ControlRoutes,
  action: (path: string) => Promise<void>,
): Promise<void> {
  using dir = tempDir();
  const path = join(dir.path, "control.sock");
  await using _ = await startControlSocket(path, routes);
  await action(path);
}

test("only its own user reaches it, and a socket left by a killed process is replaced", async () => {
  await withSocket({ status: () => ({ ready: true }) }, async (path) => {
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await using _ = await startControlSocket(path, { status: () => "second" });
    expect(await collect(path, "status")).toEqual(["second"]);
  });
});

test("a program that is there and says nothing is told as that, and one that is not there, or an operator who gives up, as before", async () => {
  const stop = new AbortController();
  const routes = { status: async () => new Promise(() => {}), fine: () => 1 };
  await withSocket(routes, async (path) => {
    const asking = async (command: string, withinMs: number): Promise<unknown> =>
      askControl(path, command, { stop: stop.signal, withinMs });
    await expect(asking("status", 30)).rejects.toMatchObject({
      code: "CONTROL_SILENT",
      message: expect.stringContaining("the program is there: it accepts connections on"),
      hint: expect.stringContaining("watchdog"),
    });
    expect(await asking("fine", 60_000)).toBe(1);
    const given = asking("status", 60_000);
    stop.abort(new Error("interrupted"));
    await expect(given).rejects.toThrow(/no answer on .*interrupted/);
    await expect(
      askControl(`${path}-other`, "status", { stop: never, withinMs: 60_000 }),
    ).rejects.toThrow(/no answer on/);
  });
});

/** As a process that is stopped, or whose loop turns in one place: the kernel takes connections for it. */
async function withSilent(action: (path: string, asked: () => number) => Promise<void>) {
  using dir = tempDir();
  const path = join(dir.path, "control.sock");
  let connections = 0;
  const server = createServer({ pauseOnConnect: true }, () => connections++).listen(path);
  await once(server, "listening");
  try {
    await action(path, () => connections);
  } finally {
    server.close();
  }
}

test("a program that hangs is told before the command is sent, whatever that would take", async () => {
  await withSilent(async (path, asked) => {
    const within = { presentWithinMs: 30 };
    const silent = { code: "CONTROL_SILENT", hint: expect.stringContaining("accel-agent doctor") };
    const answers = callControl(path, "cache-clear", {}, never, within);
    await expect(answers.next()).rejects.toMatchObject(silent);
    expect(asked()).toBe(1);
    await expect(refuseSilent(path, { stop: never, withinMs: 30 })).rejects.toMatchObject(silent);
    const interrupted = callControl(path, "status", {}, AbortSignal.abort(), within);
    await expect(interrupted.next()).rejects.toMatchObject({ code: "CONTROL_UNREACHABLE" });
  });
});

test("a program that answers has as long as its work takes; one that is of an earlier release, or not there, hangs not", async () => {
  const within = { presentWithinMs: 1_000 };
  const routes = {
    clear: async () => {
      const began = performance.now();
      await until("it took longer", () => performance.now() - began > within.presentWithinMs);
      return "proved";
    },
  };
  await withSocket(routes, async (path) => {
    expect(await Array.fromAsync(callControl(path, "clear", {}, never, within))).toEqual([
      "proved",
    ]);
    await refuseSilent(path, { stop: never });
    await refuseSilent(`${path}-other`, { stop: never });
  });
  using dir = tempDir();
  const path = join(dir.path, "control.sock");
  const earlier = createHttpServer((request, response) => {
    const isKnown = request.url === "/status";
    request.resume().once("end", () => {
      response.writeHead(isKnown ? 200 : 400);
      response.end(isKnown ? '"fine"\n' : '{"code":"USAGE","message":"unknown command"}');
    });
  }).listen(path);
  await once(earlier, "listening");
  expect(await collect(path, "status")).toEqual(["fine"]);
  earlier.close();
});

test("an answer is one line, nothing is null", async () => {
  const routes = {
    echo: (parameters: unknown) => parameters,
    nothing: () => undefined,
    later: async () => Promise.resolve([1, "ü\n"]),
  };
  await withSocket(routes, async (path) => {
    expect(await collect(path, "echo", { a: 1 })).toEqual([{ a: 1 }]);
    expect(await collect(path, "nothing")).toEqual([null]);
    expect(await collect(path, "later")).toEqual([[1, "ü\n"]]);
  });
});

test("what helps reaches the operator: a fault's own hint, else that of its code", async () => {
  const busy = (hint?: string): ControlRoutes => ({
    status: () => {
      throw new AccelError("BUSY", "it waits", hint === undefined ? {} : { hint });
    },
  });
  await withSocket(busy("See whether PostgreSQL answers."), async (path) => {
    await expect(collect(path, "status")).rejects.toMatchObject({
      code: "BUSY",
      hint: "See whether PostgreSQL answers.",
    });
  });
  await withSocket(busy(), async (path) => {
    await expect(collect(path, "status")).rejects.toMatchObject({
      hint: new AccelError("BUSY", "").hint,
    });
  });
});

test("faults keep code and message; foreign errors are internal", async () => {
  const routes = {
    fault: () => {
      throw new AccelError("PATTERN_INVALID", "no such column");
    },
    defect: async () => Promise.reject(new TypeError("x is undefined")),
  };
  await withSocket(routes, async (path) => {
    await expect(collect(path, "fault")).rejects.toMatchObject({
      code: "PATTERN_INVALID",
      message: "no such column",
    });
    await expect(collect(path, "defect")).rejects.toMatchObject({ code: "INTERNAL" });
  });
});

test.each(["unknown", "constructor", "__proto__", "toString", ""])(
  "no command %j",
  async (command) => {
    await withSocket({ status: () => "x" }, async (path) => {
      await expect(collect(path, command)).rejects.toMatchObject({ code: "USAGE" });
    });
  },
);

test("a stream arrives item by item, and ends when the caller leaves", async () => {
  let isOver = false;
  const routes = {
    async *count(_: unknown, signal: AbortSignal) {
      try {
        for (let i = 0; !signal.aborted; i++) {
          yield i;
          await new Promise((resolve) => setImmediate(resolve));
        }
      } finally {
        isOver = true;
      }
    },
  };
  await withSocket(routes, async (path) => {
    const seen: unknown[] = [];
    for await (const item of callControl(path, "count", {}, never)) {
      seen.push(item);
      if (seen.length === 100) break;
    }
    expect(seen).toEqual(Array.from({ length: 100 }, (_, i) => i));
    await until("the handler ended", () => isOver);
  });
});

test("a caller that stops reading stops the stream: nothing piles up", async () => {
  let made = 0;
  const routes = {
    async *flood() {
      for (; made < 2_000; made++) yield "x".repeat(65_536);
    },
  };
  await withSocket(routes, async (path) => {
    const answers = callControl(path, "flood", {}, never);
    await answers.next();
    let last = -1;
    await until("the stream stands still", () => {
      const isStill = last === made;
      last = made;
      return isStill;
    });
    expect(made).toBeLessThan(1_000); // Socket buffers and the client's own: far below 64 MiB.
    await answers.return(undefined);
  });
});

test("a stream that fails is an error for the caller, not an end", async () => {
  const routes = {
    async *half() {
      yield 1;
      await new Promise((resolve) => setImmediate(resolve));
      throw new Error("broken");
    },
  };
  await withSocket(routes, async (path) => {
    await expect(collect(path, "half")).rejects.toThrow();
  });
});

test("the caller's signal ends a call, and the handler hears of it", async () => {
  let handled: AbortSignal | undefined;
  const routes = {
    wait: async (_: unknown, signal: AbortSignal) => {
      handled = signal;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    },
  };
  await withSocket(routes, async (path) => {
    const stop = new AbortController();
    const answer = Array.fromAsync(callControl(path, "wait", {}, stop.signal));
    await until("the handler runs", () => handled !== undefined);
    stop.abort();
    await expect(answer).rejects.toThrow();
    await until("the handler hears of it", () => handled?.aborted === true);
  });
});

test("what is too large or no JSON is refused with an answer", async () => {
  await withSocket({ status: () => "x" }, async (path) => {
    await expect(collect(path, "status", "x".repeat(1_048_576))).rejects.toMatchObject({
      code: "USAGE",
      message: "request too large",
    });
    expect(await raw(path, ["no ", "JSON"])).toMatch(/^400 .*"USAGE".*no JSON/);
    // Without a length the limit is met while reading.
    const chunks = Array.from({ length: 40 }, () => "x".repeat(65_536));
    expect(await raw(path, chunks)).toMatch(/^400 .*too large/);
  });
});

/** Chunked, as our own client never sends. */
async function raw(path: string, chunks: readonly string[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const call = request({ socketPath: path, path: "/status", method: "POST" }, (response) => {
    let body = "";
    response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    response.on("end", () => resolve(`${response.statusCode} ${body}`)).on("error", reject);
  });
  call.on("error", reject);
  for (const chunk of chunks) call.write(chunk);
  call.end();
  return promise;
}

test("a user without the right to the socket is told so, and not asked whether the program runs", () => {
  const denied = Object.assign(new Error("connect EACCES /x"), { code: "EACCES" });
  expect(controlFault("/x", denied)).toMatchObject({
    code: "CONTROL_UNREACHABLE",
    hint: expect.stringContaining("as root"),
  });
});

test("a program that ends in the midst of an answer is no defect", async () => {
  async function* endless() {
    yield 1;
    await Promise.withResolvers<never>().promise;
  }
  using dir = tempDir();
  const path = join(dir.path, "control.sock");
  const socket = await startControlSocket(path, { endless });
  const answers = callControl(path, "endless", {}, never);
  expect(await answers.next()).toMatchObject({ value: 1 });
  await Promise.all([
    expect(answers.next()).rejects.toMatchObject({ code: "CONTROL_UNREACHABLE" }),
    socket[Symbol.asyncDispose](),
  ]);
});

test("where nobody listens", async () => {
  await expect(collect("/nowhere/control.sock", "status")).rejects.toMatchObject({
    code: "CONTROL_UNREACHABLE",
    message: expect.stringContaining("/nowhere/control.sock"),
  });
});

test("a path that is too long for a socket is an error with the path", async () => {
  using dir = tempDir();
  const path = join(dir.path, "x".repeat(120));
  await expect(startControlSocket(path, {})).rejects.toMatchObject({
    code: "ADDRESS_UNUSABLE",
    message: expect.stringContaining(path),
  });
});
