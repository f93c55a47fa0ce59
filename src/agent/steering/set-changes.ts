// How a bot set changes: by central's changes where they fit, otherwise as a whole. Whatever arrives wrong,
// short, twice or in another order, the last good set stays in force, and the watch is told why it is behind.

import { Mutex } from "../../base/mutex.ts";
import { messageOf } from "../../core/faults.ts";
import type { BotSet, JournalBody } from "../../wire/journal.ts";
import type { BotSetState } from "../../wire/snapshot.ts";
import type { SetStore } from "../bots/sets/set-store.ts";
import type { SetWatch } from "../bots/sets/set-watch.ts";
import type { SetName, SetVersion } from "../bots/tables/table-messages.ts";
import type { BotSetContents } from "../link/bot-set-content.ts";
import type { CentralClient } from "../link/central-client.ts";
import type { Serving } from "./serving.ts";

export type SetChangesPorts = {
  readonly sets: Pick<SetStore, "applyDelta" | "refusal" | "replace" | "list">;
  readonly client: Pick<CentralClient, "getBotSet">;
  readonly contents: Pick<BotSetContents, "read">;
  readonly watch: Pick<SetWatch, "behind" | "current" | "fetched" | "behindNow">;
  readonly serving: Pick<Serving, "publishSets">;
};

export type SetOutcome =
  | {
      readonly kind: "in force";
      readonly set: SetVersion | undefined;
      /** Whether it was fetched whole. */
      readonly whole: boolean;
    }
  | { readonly kind: "refused"; readonly reason: string };

/** What came of a whole set. `whole` says whether it was fetched; if it is refused, the old set stays. */
export type SetTaken =
  | { readonly kind: "taken"; readonly whole: boolean }
  | { readonly kind: "refused"; readonly reason: string };

export class SetChanges {
  readonly #ports: SetChangesPorts;
  /**
   * One mutex a set, so that it changes once at a time. Their number is bounded by the hosts that were
   * linked.
   */
  readonly #turns = new Map<string, Mutex>();

  constructor(ports: SetChangesPorts) {
    this.#ports = ports;
  }

  /**
   * Changes a set; the change is in force when it resolves. Throws if the whole set is needed and cannot be
   * fetched; the change is to be tried again then.
   */
  async change(body: JournalBody<"bots.changed">, signal: AbortSignal): Promise<SetOutcome> {
    const name: SetName = { host: body.domain, kind: body.set };
    return this.#alone(name, async () => {
      const { sets, watch } = this.#ports;
      const { kind, reason } = sets.applyDelta(body);
      if (kind === "shrunk") return this.#refused(name, reason);
      if (kind !== "mismatch") return this.#inForce(name, false);
      watch.behind(name, "mismatch", reason);
      return this.#fetch(name, signal);
    });
  }

  /** Takes a set as a snapshot states it. It is not yet in force when this resolves; the caller publishes. */
  async take(state: BotSetState, signal: AbortSignal): Promise<SetTaken> {
    const name: SetName = { host: state.domain, kind: state.set };
    return this.#alone(name, async () => {
      const taken = await this.#take(state, signal);
      if (taken.kind === "taken") this.#ports.watch.current(name);
      return taken;
    });
  }

  /**
   * Empties a set that a snapshot lacks though its host is linked; a set that may not shrink like that stays.
   */
  async empty(set: SetVersion, signal: AbortSignal): Promise<SetTaken> {
    const { sets, watch } = this.#ports;
    return this.#alone(set, async () => {
      const none = { ...set, count: 0, digest: "0".repeat(64) };
      const reason = sets.refusal(none, false);
      if (reason !== undefined) {
        watch.behind(set, "shrunk", reason);
        return { kind: "refused", reason };
      }
      await sets.replace(none, nothing(), signal);
      watch.current(set);
      return { kind: "taken", whole: true };
    });
  }

  /** Fetches the sets that are behind again, since no new entry may come that would do it. Never rejects. */
  async heal(signal: AbortSignal): Promise<void> {
    for (const name of this.#ports.watch.behindNow()) {
      if (signal.aborted) return;
      // A failure was told to the watch.
      await this.#alone(name, async () => this.#fetch(name, signal)).catch(() => undefined);
    }
  }

  async #fetch(name: SetName, signal: AbortSignal): Promise<SetOutcome> {
    const { client, watch } = this.#ports;
    try {
      const taken = await this.#take(await client.getBotSet(name.host, name.kind, signal), signal);
      return taken.kind === "refused" ? taken : await this.#inForce(name, taken.whole);
    } catch (error) {
      if (!signal.aborted) watch.behind(name, "unavailable", messageOf(error));
      throw error;
    }
  }

  async #take(state: BotSetState, signal: AbortSignal): Promise<SetTaken> {
    const { sets, contents, watch } = this.#ports;
    const { domain: host, set: kind, version, count, digest, blob, shrink_meant: isMeant } = state;
    const before = this.#own({ host, kind });
    // After one whole set the changes that led to it come in as mismatches too: hundreds of them after a
    // burst of marks.
    if (before?.version === version && before.digest === digest)
      return { kind: "taken", whole: false };
    const reason = sets.refusal({ host, kind, count }, isMeant);
    if (reason !== undefined) {
      watch.behind({ host, kind }, "shrunk", reason);
      return { kind: "refused", reason };
    }
    const elements = count === 0 ? nothing() : contents.read(blob, signal);
    await sets.replace({ host, kind, version, count, digest }, elements, signal);
    watch.fetched({ host, kind });
    return { kind: "taken", whole: true };
  }

  async #inForce(name: SetName, whole: boolean): Promise<SetOutcome> {
    await this.#ports.serving.publishSets();
    this.#ports.watch.current(name);
    return { kind: "in force", set: this.#own(name), whole };
  }

  #refused(name: SetName, reason: string): SetOutcome {
    this.#ports.watch.behind(name, "shrunk", reason);
    return { kind: "refused", reason };
  }

  #own({ host, kind }: SetName): SetVersion | undefined {
    return this.#ports.sets.list().find((set) => set.host === host && set.kind === kind);
  }

  async #alone<T>({ host, kind }: SetName, action: () => Promise<T>): Promise<T> {
    const key: `${BotSet}/${string}` = `${kind}/${host}`;
    const turns = this.#turns.get(key) ?? new Mutex();
    this.#turns.set(key, turns);
    return turns.run(action);
  }
}

async function* nothing(): AsyncGenerator<never> {}
