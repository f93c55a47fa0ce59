// Opens what lets central roll releases over this host, where the host allows it.

import type { Ground } from "./ground.ts";
import { visitorAnswers } from "./admin/domain-reports.ts";
import { HostInstaller, installerPlaces } from "./rollout/host-installer.ts";
import { ReleaseAsking } from "./rollout/release-asking.ts";
import type { ServedParts } from "./serve.ts";

export function openRollouts(
  stack: AsyncDisposableStack,
  { options, common, client, db }: Ground,
  { pool, serving }: ServedParts,
): void {
  const { settings, version, bootEpoch, health, now, random, log } = options;
  stack.use(
    new ReleaseAsking({
      instanceId: db.instanceId,
      bootId: bootEpoch,
      version,
      facts: async () => {
        const workers = pool.status();
        return {
          ready: workers.live > 0 && workers.version === serving.state.version,
          ...visitorAnswers(await pool.metrics()),
          warnings: [
            ...new Set(
              health.list().flatMap(({ code, severity }) => (severity === "info" ? [] : [code])),
            ),
          ],
        };
      },
      installer: new HostInstaller(installerPlaces(settings.state_dir)),
      tell: async (told, signal) => client.tellRelease(told, signal),
      now,
      random,
      log,
      stop: common.stop,
    }),
  );
}
