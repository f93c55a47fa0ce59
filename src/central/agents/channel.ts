// One agent's channel: hello → welcome, then the journal in order from where the agent stands, and what the agent proves and reports.
//
//   new ── hello that fits ──▶ streaming        new ── hello that does not fit ──▶ resync ── snapshot's receipt, or a new hello ──▶ streaming
//
// While the store is away the channel stays: what is to be read and what the agent told wait for its return. Who comes anew then finds no central that lets him in.
//
// In `resync` nothing is sent from the journal. Receipts other than the snapshot's belong to another history:
// they are acknowledged, not stored.

import type { Log } from "../../base/log.ts";
import type { AnswerMessage } from "../../wire/ask.ts";
import type { Hello, Report } from "../../wire/channel.ts";
import type { Position } from "../../wire/position.ts";
import type { Receipt } from "../../wire/receipt.ts";
import type { ChannelSocket, PeerMessage } from "./channel-socket.ts";
import { isStoreAway } from "../store/engine/postgres-faults.ts";
import type { StoreReturn } from "./store-return.ts";
import { entriesTaken, judgeFit } from "./journal-fit.ts";
import type { AgentStore } from "../store/journal/agent-store.ts";

export type ProgressMessage = Extract<PeerMessage, { type: "progress" }>;

export type ChannelEvents = {
  /** Called when hello was accepted, and again when the same agent says hello again. */
  readonly greeted: (channel: Channel) => void;
  /** Called when the channel itself made the site's journal longer. */
  readonly journalGrew: (deploymentSiteId: number) => void;
  readonly entriesSent: (count: number) => void;
  readonly receiptsStored: (channel: Channel, receipts: readonly Receipt[]) => void;
  readonly answered: (channel: Channel, answer: AnswerMessage) => void;
  readonly progressed: (deploymentSiteId: number, message: ProgressMessage) => void;
};

/** Whose channel it is, and what its request for it said. */
export type ChannelPeer = {
  readonly deploymentSiteId: number;
  readonly takesExtensions: boolean;
  readonly takesClasses: boolean;
  readonly takesHeld: boolean;
  /** How often channels of the site were ordered to be closed before its token was given. */
  readonly shutCount: number;
};

export type ChannelStore = {
  readonly store: AgentStore;
  readonly storeReturn: Pick<StoreReturn, "patiently">;
};

export class Channel {
  readonly deploymentSiteId: number;
  readonly #store: AgentStore;
  readonly #storeReturn: Pick<StoreReturn, "patiently">;
  readonly #events: ChannelEvents;
  readonly #log: Log;
  /** Whether the agent takes extensions of entries, and questions with items. */
  readonly takesExtensions: boolean;
  readonly #takesClasses: boolean;
  #socket: ChannelSocket | undefined;
  #instanceId: string | undefined;
  #bootId = "";
  #state: "new" | "resync" | "streaming" = "new";
  /** Everything up to here was sent, or the agent had it already. */
  #cursor = 0;
  #pumping = Promise.resolve();
  #isPumping = false;
  #pumpAgain = false;
  #isFinishing = false;

  constructor(
    {
      deploymentSiteId,
      takesExtensions,
      takesClasses,
    }: Pick<ChannelPeer, "deploymentSiteId" | "takesExtensions" | "takesClasses">,
    { store, storeReturn }: ChannelStore,
    events: ChannelEvents,
    log: Log,
  ) {
    this.deploymentSiteId = deploymentSiteId;
    this.takesExtensions = takesExtensions;
    this.#takesClasses = takesClasses;
    this.#store = store;
    this.#storeReturn = storeReturn;
    this.#events = events;
    this.#log = log;
  }

  /** Attaches the socket; called once, before the first message. */
  attach(socket: ChannelSocket): void {
    this.#socket = socket;
  }

  get socket(): ChannelSocket {
    if (this.#socket === undefined) throw new TypeError("a channel without a socket");
    return this.#socket;
  }

  /** The id of the instance; undefined before hello. */
  get instanceId(): string | undefined {
    return this.#instanceId;
  }

  /** The id of the agent's start; "" before hello. */
  get bootId(): string {
    return this.#bootId;
  }

  /** The number of the last entry that the agent has, or is being sent; undefined while it takes none. */
  get seq(): number | undefined {
    return this.#state === "streaming" ? this.#cursor : undefined;
  }

  /** Wakes the channel because the journal grew, or may have. */
  wake(): void {
    if (this.#state !== "streaming") return;
    this.#pumpAgain = true;
    if (!this.#isPumping) this.#pumping = this.#pump();
  }

  /** Sends what the journal holds, as far as the store can be asked now, then closes. */
  async finish(code: number, reason: string): Promise<void> {
    this.#isFinishing = true;
    this.wake();
    await this.#pumping;
    this.socket.close(code, reason);
  }

  async receive(messages: readonly PeerMessage[]): Promise<void> {
    for (let at = 0; at < messages.length;) {
      const message = messages[at];
      if (message === undefined || !this.socket.isOpen) return;
      if (this.#instanceId === undefined && message.type !== "hello")
        return this.socket.close(1008, "the first message must be hello");
      if (message.type === "receipt") {
        const leading = leadingReceipts(messages.slice(at));
        const receipts = leading.map(({ receipt }) => receipt);
        const { position } = leading.at(-1) ?? {};
        await this.#patiently(async () => this.#onReceipts(receipts, position));
        at += receipts.length;
      } else {
        await this.#patiently(async () => this.#onOther(message));
        at += 1;
      }
    }
  }

  /** Once more where the store was away: each of these is stored once, however often it is told, and acknowledged only then. */
  async #patiently(action: () => Promise<void>): Promise<void> {
    await this.#storeReturn.patiently(action, () => this.socket.isOpen);
  }

  async #onOther(message: Exclude<PeerMessage, { type: "receipt" }>): Promise<void> {
    switch (message.type) {
      case "hello":
        return this.#onHello(message);
      case "report":
        if (message.report.instance_id !== this.#instanceId)
          return this.socket.close(1008, "the report is of another instance than hello");
        return this.#onReport(message.report);
      case "answer":
        return this.#events.answered(this, message);
      case "progress":
        return this.#events.progressed(this.deploymentSiteId, message);
      default:
        message satisfies never;
    }
  }

  async #onReport(report: Report): Promise<void> {
    await this.#store.saveReport(this.deploymentSiteId, report);
    const { counted } = report;
    if (counted !== undefined) void this.socket.send({ type: "report_ack", counted });
  }

  async #onHello(hello: Hello): Promise<void> {
    this.#state = "new";
    await this.#pumping; // An earlier hello's pumping must not send behind the new one.
    const { headSeq, resync } = await judgeFit(this.#store, this.deploymentSiteId, {
      epoch: hello.epoch,
      seq: hello.applied_seq,
      chain: hello.chain,
    });
    await this.#store.saveHello(this.deploymentSiteId, hello);
    this.#instanceId = hello.instance_id;
    this.#bootId = hello.boot_id;
    this.#cursor = resync === undefined ? hello.applied_seq : 0;
    this.#state = resync === undefined ? "streaming" : "resync";
    this.#events.greeted(this);
    await this.socket.send({ type: "welcome", epoch: this.#store.epoch, head_seq: headSeq });
    if (resync !== undefined) {
      await this.socket.send({ type: "resync", reason: resync });
      return;
    }
    this.wake();
    await this.#tellClassesAgain();
  }

  /** Tells of classes of bots again if the instance refused that, as a release does that does not know of them. */
  async #tellClassesAgain(): Promise<void> {
    if (!this.#takesClasses || this.#instanceId === undefined) return;
    const { deploymentSiteId } = this;
    if (await this.#store.tellClassesAgain(deploymentSiteId, this.#instanceId))
      this.#events.journalGrew(deploymentSiteId);
  }

  /** Stores receipts. `position` is that of the last of them. */
  async #onReceipts(receipts: readonly Receipt[], position: Position | undefined): Promise<void> {
    let stored = receipts;
    if (this.#state === "resync") {
      const at = receipts.findIndex(isOfSnapshot);
      stored = at < 0 ? [] : receipts.slice(at);
    }
    if (stored.length > 0) {
      await this.#store.saveReceipts(
        this.deploymentSiteId,
        this.#instanceId ?? "",
        stored,
        position,
      );
      this.#events.receiptsStored(this, stored);
    }
    const snapshot = stored.find(isOfSnapshot);
    if (this.#state === "resync" && snapshot !== undefined) {
      this.#cursor = snapshot.seq;
      this.#state = "streaming";
      this.wake();
    }
    for (const { seq, phase } of receipts)
      void this.socket.send({ type: "receipt_ack", seq, phase });
    // A refusal of the release before may come with the first receipts after an update.
    if (stored.some(({ phase }) => phase === "refused")) await this.#tellClassesAgain();
  }

  /** Sends pages, one at a time; each waits until the system took the one before. */
  async #pump(): Promise<void> {
    this.#isPumping = true;
    try {
      while (this.#pumpAgain && this.#state === "streaming" && this.socket.isOpen) {
        this.#pumpAgain = false;
        const page = await this.#storeReturn.patiently(
          async () => this.#store.entriesAfter(this.deploymentSiteId, this.#cursor),
          () => this.#state === "streaming" && this.socket.isOpen && !this.#isFinishing,
        );
        const entries = entriesTaken(page.entries, this.takesExtensions);
        const last = entries.at(-1);
        if (last === undefined || this.#state !== "streaming") continue;
        if (!(await this.socket.send({ type: "entries", entries }))) return;
        this.#cursor = last.seq;
        if (!page.isLast) this.#pumpAgain = true; // Entries that came since this was read have woken us.
        this.#events.entriesSent(entries.length);
      }
    } catch (error) {
      if (isStoreAway(error)) return; // Nobody waits for the page any more.
      this.#log.error({ err: error, deployment_site_id: this.deploymentSiteId }, "channel failed");
      this.socket.close(1011, "central could not read the journal; its log says why");
    } finally {
      this.#isPumping = false; // Set in the same step as the last look at #pumpAgain; a wake between the two would be lost.
    }
  }
}

type ReceiptMessage = Extract<PeerMessage, { type: "receipt" }>;

function leadingReceipts(messages: readonly PeerMessage[]): readonly ReceiptMessage[] {
  const receipts: ReceiptMessage[] = [];
  for (const message of messages) {
    if (message.type !== "receipt") break;
    receipts.push(message);
  }
  return receipts;
}

function isOfSnapshot({ detail, phase }: Receipt): boolean {
  return phase === "applied" && detail["snapshot"] === true;
}
