// What the vault tells operators: how many keys and certificates there are, what expires, and what could not
// be taken. Names of certificates are told, keys never are.

import type { Health } from "../../base/health.ts";
import { createMetrics, type Registry } from "../../base/metrics.ts";
import type { CertificateFacts } from "../../core/serving/certificate-choice.ts";

export const vaultMetrics = {
  accel_agent_certificates: {
    kind: "gauge",
    help: "Certificates in force on this host, by state: valid, expiring (within 14 days), expired, early (not valid yet).",
    labels: ["state"],
  },
  accel_agent_certificate_first_expiry_timestamp_seconds: {
    kind: "gauge",
    help: "When the first of the certificates in force expires; 0 if there is none.",
  },
  accel_agent_symmetric_keys: {
    kind: "gauge",
    help: "Symmetric keys of this deployment site, by state: open, locked (sealed under another secret16 than this host's).",
    labels: ["state"],
  },
  accel_agent_certificate_installs_total: {
    kind: "counter",
    help: "Certificates of the site as they arrived from central, by outcome: installed, locked, invalid.",
    labels: ["outcome"],
  },
} as const;

/**
 * A certificate that ends within this time warns. Renewal is usual when a third of 90 days is left; one that
 * is still here two weeks before its end was forgotten.
 */
const expiringMs = 14 * 86_400_000;
const namedMax = 3;

const states = ["valid", "expiring", "expired", "early"] as const;
type State = (typeof states)[number];

export function stateOf({ notBeforeMs, notAfterMs }: CertificateFacts, nowMs: number): State {
  if (notAfterMs <= nowMs) return "expired";
  if (notBeforeMs > nowMs) return "early";
  return notAfterMs - nowMs <= expiringMs ? "expiring" : "valid";
}

export type VaultTelemetryDeps = { readonly registry: Registry; readonly health: Health };

export class VaultTelemetry {
  readonly #health: Health;
  readonly #metrics;

  constructor({ registry, health }: VaultTelemetryDeps) {
    this.#health = health;
    this.#metrics = createMetrics(vaultMetrics, registry);
  }

  arrived(outcome: "installed" | "locked" | "invalid"): void {
    this.#metrics.accel_agent_certificate_installs_total.inc({ outcome });
  }

  keys(open: number, locked: readonly string[]): void {
    this.#metrics.accel_agent_symmetric_keys.set({ state: "open" }, open);
    this.#metrics.accel_agent_symmetric_keys.set({ state: "locked" }, locked.length);
    if (locked.length === 0) this.#health.settle("vault_locked");
    else
      this.#health.raise(
        "vault_locked",
        "error",
        `${locked.length} of the symmetric keys cannot be opened (${listed(locked)}): they are sealed under another secret16 than this host's; certificates that need them are not served`,
        "The secret16 was rotated: put the new one into the file that `secret16_file` names and restart.",
      );
  }

  /**
   * Updates metrics and warnings. It is called again each hour, for certificates expire without any event.
   */
  certificates(certificates: readonly CertificateFacts[], nowMs: number): void {
    const byState = Map.groupBy(certificates, (one) => stateOf(one, nowMs));
    for (const state of states)
      this.#metrics.accel_agent_certificates.set({ state }, byState.get(state)?.length ?? 0);
    const first = soonestFirst(certificates)[0];
    this.#metrics.accel_agent_certificate_first_expiry_timestamp_seconds.set(
      first === undefined ? 0 : first.notAfterMs / 1_000,
    );
    this.#tell("expired", byState.get("expired") ?? []);
    this.#tell("expiring", byState.get("expiring") ?? []);
  }

  #tell(state: "expired" | "expiring", certificates: readonly CertificateFacts[]): void {
    const code = `certificate_${state}` as const;
    if (certificates.length === 0) {
      this.#health.settle(code);
      return;
    }
    const named = soonestFirst(certificates).map(
      ({ names, notAfterMs }) => `${names[0]} (${new Date(notAfterMs).toISOString().slice(0, 10)})`,
    );
    const isOne = certificates.length === 1;
    const count = `${certificates.length} certificate${isOne ? "" : "s"}`;
    const expire = `expire${isOne ? "s" : ""} within 14 days`;
    const what = state === "expired" ? "expired, visitors are warned" : expire;
    this.#health.raise(
      code,
      state === "expired" ? "error" : "warning",
      `${count} ${what}: ${listed(named)}`,
      "Upload renewed ones for the same names: POST /upload/certificates/{deployment_name}/.",
    );
  }
}

export function soonestFirst<C extends CertificateFacts>(certificates: readonly C[]): readonly C[] {
  return certificates.toSorted((one, other) => one.notAfterMs - other.notAfterMs);
}

function listed(names: readonly string[]): string {
  const more = names.length - namedMax;
  return `${names.slice(0, namedMax).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
