// 100 kills (LOG_ENGINE_KILLS sets another number) of whoever writes request logs into PostgreSQL, in the middle of a batch's transaction: the program and the server
// in turn. Then every number of each lane has to be there once.

import { logWay } from "../test/support/any-logs.ts";
import { judgeLogsAt, killWriters } from "../test/support/log-engine-kill.ts";
import { postgresBin, PostgresServer } from "../test/support/postgres-server.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { Figures } from "./support/figures.ts";

const kills = Number(process.env["LOG_ENGINE_KILLS"] ?? 100);
const sayEvery = 10;

export async function run(say: (line: string) => void): Promise<void> {
  const bin = postgresBin();
  if (bin === undefined) throw new Error("it needs PostgreSQL 15: apt install postgresql");
  await using server = await PostgresServer.start(bin, { isDurable: true });
  using dir = tempDir();
  const way = logWay({ bin, server }, "killed");
  const { ofPrograms, ofServers, acknowledged, told } = await killWriters({
    server,
    way,
    directory: dir.path,
    kills,
    onKill: (so) => {
      if (so.kills % sayEvery === 0) say(`${so.kills} kills, ${so.acknowledged} batches`);
    },
  });
  const marks = await judgeLogsAt(server, "killed");
  const lost = [...told].filter(([no, through]) => (marks.get(no) ?? 0) < through);
  const figures = new Figures(say);
  figures.add("kills of the program", ofPrograms, "", { least: Math.ceil(kills / 2) });
  figures.add("kills of the server", ofServers, "", { least: Math.floor(kills / 2) });
  figures.add("batches that were acknowledged", acknowledged, "", { least: kills });
  figures.add("lanes that lack what was acknowledged", lost.length, "", { most: 0 });
  figures.add(
    "numbers that are there, each once",
    [...marks.values()].reduce((sum, mark) => sum + mark, 0),
    "",
  );
  if (figures.missed.length > 0) throw new Error(`missed: ${figures.missed.join("; ")}`);
}
