// Certificates that devloves order: the parts of it, composed.

import { readFileSync } from "node:fs";
import type { Health } from "../base/health.ts";
import type { Log } from "../base/log.ts";
import type { Registry } from "../base/metrics.ts";
import { AccelError, messageOf } from "../core/faults.ts";
import { startCertificateOrders } from "./acme/certificate-orders.ts";
import { AcmeDirectories } from "./acme/directories.ts";
import { DirectoryHttp } from "./acme/directory-http.ts";
import { createAcmeMetrics } from "./acme/metrics.ts";
import { SelfCheck } from "./acme/self-check.ts";
import type { Hub } from "./agents/hub.ts";
import type { WakeBus } from "./agents/wake.ts";
import { checkCertificate } from "./api/certificate-check.ts";
import type { CentralSettings } from "./settings/fields.ts";
import type { Blobs } from "./store/objects/object-store.ts";
import type { CustomerStore } from "./store/engine/customer-store.ts";
import type { Store } from "./store/engine/database.ts";

export type AcmeDeps = {
  readonly settings: CentralSettings;
  readonly version: string;
  readonly store: Store;
  readonly blobs: Blobs;
  readonly registry: Registry;
  readonly health: Health;
  readonly log: Log;
  readonly now: () => Date;
  readonly customers: CustomerStore;
  readonly bus: Pick<WakeBus, "publish">;
  readonly hub: Pick<Hub, "isInTouch">;
  readonly isOurs: () => boolean;
};

/** Starts what orders and renews certificates. Disposing waits for what is under way. */
export function startAcme(deps: AcmeDeps): AsyncDisposable {
  const { settings, version, registry, now, bus, hub } = deps;
  const mayBePrivate = settings["acme.private_addresses"];
  const authority = readAcmeAuthority(settings["acme.ca_file"]);
  const http = new DirectoryHttp({ version, mayBePrivate, authority, now });
  const orders = startCertificateOrders({
    ...deps,
    directories: new AcmeDirectories(http, now),
    selfCheck: new SelfCheck({
      resolvers: settings["acme.resolvers"],
      port: settings["acme.check_port"],
      mayBePrivate,
      version,
    }),
    checkIssued: checkCertificate,
    isLive: (siteId, instance) => hub.isInTouch(siteId, instance),
    wake: (siteIds) => bus.publish(siteIds),
    random: Math.random,
    metrics: createAcmeMetrics(registry),
  });
  return {
    async [Symbol.asyncDispose]() {
      await orders[Symbol.asyncDispose]();
      http[Symbol.dispose]();
    },
  };
}

/** Throws FILE_UNUSABLE. */
function readAcmeAuthority(path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new AccelError("FILE_UNUSABLE", `acme.ca_file cannot be read: ${messageOf(error)}`);
  }
}
