// Notices between buses in one process, whose connections the test cuts.

import type { BusNotice, NoticeWay, OpenNoticeWay } from "../../src/central/cluster/bus.ts";

type Joined = Parameters<OpenNoticeWay>[0] & { isCut: boolean };

/** Each bus that opens a way joins, and has the number of those before it. */
export class FakeNotices {
  readonly joined: Joined[] = [];
  readonly sent: (readonly BusNotice[])[] = [];
  failures = 0;

  readonly openWay: OpenNoticeWay = async (given) => {
    const own: Joined = { ...given, isCut: false };
    this.joined.push(own);
    const way: NoticeWay = {
      send: async (notices) => {
        if (own.isCut) {
          this.failures++;
          throw new Error("cut");
        }
        this.sent.push(notices);
        for (const { channel, text } of notices)
          for (const other of this.joined)
            if (!other.isCut && other.channels.includes(channel)) other.onNotice(text);
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
    return way;
  };

  cut(at: number): void {
    const joined = this.joined[at];
    if (joined === undefined) throw new Error(`nobody joined as ${at}`);
    joined.isCut = true;
    joined.onState("lost", new Error("cut"));
  }

  mend(at: number): void {
    const joined = this.joined[at];
    if (joined === undefined) throw new Error(`nobody joined as ${at}`);
    joined.isCut = false;
    joined.onState("back");
  }
}
