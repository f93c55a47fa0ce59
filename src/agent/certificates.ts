// Opens the keys and certificates of this deployment site: the vault that holds them, and what puts them into
// the served state.

import { repeating } from "../base/wait.ts";
import type { Staple } from "../core/serving/staple.ts";
import type { WorkerPool } from "./accelerator/pool/workers.ts";
import type { Ground } from "./ground.ts";
import type { Serving } from "./steering/serving.ts";
import { VaultChanges } from "./steering/vault-changes.ts";
import { askResponder } from "./vault/ask-responder.ts";
import { Stapler } from "./vault/stapler.ts";
import { openVault, type Vault } from "./vault/vault.ts";

/** The time between looks at the certificates, for they expire without any event. */
const expiryPeriodMs = 3_600_000;
/** The time between looks whether an answer of OCSP is due. */
const staplePeriodMs = 5_000;

export type KeptCertificates = { readonly vault: Vault; readonly changes: VaultChanges };

/** Keeps answers of OCSP for the certificates in force; undefined where nobody is to be asked. */
export function openStapler(
  stack: AsyncDisposableStack,
  { options, common }: Ground,
  pool: Pick<WorkerPool, "staple">,
): Stapler | undefined {
  const { settings, random, now, log } = options;
  const whose = settings["accelerator.ocsp_stapling"];
  if (whose === "off" || settings["accelerator.tls_listen"] === undefined) return undefined;
  const onStaples = (staples: readonly Staple[]): void => pool.staple(staples);
  const ask = askResponder(whose === "any");
  const stapler = new Stapler({ ...common, ask, onStaples, random, now });
  stack.use(
    repeating(staplePeriodMs, async () => stapler.look(), {
      stop: common.stop,
      onError: (error) => log.error({ err: error }, "asking for answers of OCSP failed"),
    }),
  );
  return stapler;
}

/** Opens the certificates that were in force before; the next publish puts them into force. */
export async function openKeptCertificates(
  stack: AsyncDisposableStack,
  { options, common, db: documents, client, secret }: Ground,
  { serving, pool }: { readonly serving: Serving; readonly pool: Pick<WorkerPool, "left"> },
): Promise<KeptCertificates> {
  const { settings, random, now, log } = options;
  const vault = await openVault({
    stateDir: settings.state_dir,
    site: () => ({ name16: settings.name16, secret16: secret.value }),
    getBlob: (...asked) => client.getBlob(...asked),
    now,
    left: async () => pool.left(),
    ...common,
  });
  const getSnapshot = async (signal: AbortSignal) => client.getSnapshot(signal);
  const signIn = async (): Promise<void> => client.signIn();
  const deps = { vault, serving, documents, getSnapshot, signIn, random, ...common };
  const changes = new VaultChanges(deps);
  await changes.restore();
  secret.onChange(() => {
    changes.unlock().catch((error: unknown) => {
      log.error({ err: error }, "what waited for the new secret16 could not be opened");
    });
  });
  stack.use(
    repeating(expiryPeriodMs, () => vault.tellExpiry(), {
      stop: common.stop,
      onError: (error) => log.error({ err: error }, "looking at the expiry of certificates failed"),
    }),
  );
  return { vault, changes };
}
