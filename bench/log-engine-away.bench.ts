// The database of request logs is away for 10 minutes (`--minutes N` sets another time) while visitors come and a customer clears: real central with its store on another PostgreSQL,
// two real agents, all on loopback. Central has to be ready and steer all the time, and every record has to be there once afterwards.

import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { runLogEngineAway, type ProvedOrder } from "../test/support/log-engine-away.ts";
import { postgresBin } from "../test/support/postgres-server.ts";
import { Figures, percentile } from "./support/figures.ts";

const perSecond = 100;
const clearEveryMs = 2_000;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const bin = postgresBin();
  if (bin === undefined) throw new Error("it needs PostgreSQL 15: apt install postgresql");
  const { values } = parseArgs({ args: [...args], options: { minutes: { type: "string" } } });
  const minutes = Number(values.minutes ?? 10);
  if (!(minutes > 0 && minutes <= 60)) throw new Error("--minutes is a number up to 60");
  const seen = await runLogEngineAway({
    bin,
    awayMs: minutes * 60_000,
    perSecond,
    clearEveryMs,
    say,
  });
  const { orders, health, visitors, asked, spooled, agents, stored, counted, violations } = seen;
  const sum = <T>(all: readonly T[], what: (one: T) => number): number =>
    all.reduce((before, one) => before + what(one), 0);
  const figures = new Figures(say);
  const away = orders.filter(({ isWhileAway }) => isWhileAway);
  figures.add("minutes away", minutes, "min");
  figures.add(
    "answers of /readyz that were not 200",
    health.sent - health.right,
    "",
    { most: 0 },
    `of ${health.sent}`,
  );
  figures.add("clears that both hosts proved, while it was away", away.length, "", {
    least: minutes,
  });
  const tellTimes = (name: string, of: readonly ProvedOrder[]): void => {
    const times = of.map(({ tookMs }) => tookMs);
    figures.add(`clear to both receipts, ${name}, p50`, percentile(times, 0.5), "ms");
    figures.add(`clear to both receipts, ${name}, p99`, percentile(times, 0.99), "ms");
  };
  tellTimes("while it was away", away);
  tellTimes(
    "before and after",
    orders.filter(({ isWhileAway }) => !isWhileAway),
  );
  figures.add(
    "visits with another answer than the page",
    sum(visitors, ({ sent, right }) => sent - right),
    "",
    { most: 0 },
    `of ${sum(visitors, ({ sent }) => sent)}`,
  );
  figures.add(
    "questions about logs that were not answered 503",
    asked.filter(({ status }) => status !== 503).length,
    "",
    { most: 0 },
    `of ${asked.length}`,
  );
  figures.add("records that waited before", spooled.before, "");
  figures.add("records that waited at the most", spooled.most, "", {
    least: perSecond * 60 * minutes,
  });
  figures.add("the spools of both hosts at the most", spooled.mostBytes / 2 ** 20, "MiB");
  figures.add("from its return until all were there", spooled.drainedMs / 1_000, "s");
  const accepted = sum(agents, (one) => one.accepted);
  figures.add("records that both hosts accepted", accepted, "");
  figures.add(
    "of them committed",
    sum(agents, (one) => one.committed),
    "",
    { least: accepted },
  );
  figures.add(
    "of them dropped",
    sum(agents, (one) => one.dropped),
    "",
    { most: 0 },
  );
  figures.add("numbers at the database, each once", stored.marks, "", { least: accepted });
  figures.add("records of the domain there", counted.records, "");
  figures.add("requests of the domain by /analytics/", counted.analytics, "", {
    least: counted.records,
  });
  figures.add("moments at which an agent's balance was off", violations.length, "", { most: 0 });
  say(
    `load of the host over 1, 5 and 15 minutes: ${loadavg()
      .map((load) => load.toFixed(1))
      .join(", ")}`,
  );
  if (stored.marks !== accepted || counted.analytics !== counted.records)
    throw new Error("there is more at the database than was accepted");
  if (figures.missed.length > 0) throw new Error(`missed: ${figures.missed.join("; ")}`);
}
