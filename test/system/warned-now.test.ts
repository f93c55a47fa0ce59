// What `accel-agent status` says of the host is so at the moment at which it is asked, however long ago the last look was.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { DamageRig } from "../support/damage-rig.ts";
import { until } from "../support/until.ts";

test("connections that were refused: as many as there were until now, each time it is asked", async () => {
  await using rig = await DamageRig.start(undefined, ["prlimit", "--nofile=1024:1024"]);
  const held: Socket[] = [];
  let refused = 0;
  const knock = async (): Promise<void> => {
    const socket = connect(rig.edge.ports.visitors, "127.0.0.1").on("error", () => undefined);
    socket.once("close", () => refused++);
    held.push(socket);
    await once(socket, "connect");
  };
  try {
    for (let round = 1; round <= 2; round++) {
      const before = refused;
      await until("more are refused", async () => {
        for (let i = 0; i < 50; i++) await knock();
        return refused > before;
      });
      // All that were let in are answered now, so that none is on its way to be refused.
      const told = await until("nobody else is refused", async () => {
        const seen = refused;
        const warnings = await rig.warnings();
        return seen === refused && warnings.find((one) => one.startsWith("connections_refused"));
      });
      expect(told).toBe(
        `connections_refused: ${refused} connections of visitors were refused, because too many were open`,
      );
    }
  } finally {
    for (const socket of held) socket.destroy();
  }
}, 120_000);
