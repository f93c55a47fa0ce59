// `/monitor-notification-channel/`: the chat hooks and the e-mail channel names that a customer's alerts go to.

import {
  channelTestedShape,
  chatChannelShape,
  chatChannelWrite,
  emailChannelShape,
  emailChannelWrite,
  type ChannelTested,
  type ChatChannel,
  type EmailChannel,
} from "../../wire/customer/monitor-channels.ts";
import { gives, givesNothing, lists, makes } from "../../wire/customer/operation.ts";
import type { Body, Shape } from "../../wire/customer/shape.ts";
import { hookUrlFault } from "../../core/addresses/public-address.ts";
import {
  conflict,
  created,
  invalid,
  list,
  noContent,
  notFound,
  ok,
  tooMany,
  type Answer,
  type ProblemAnswer,
} from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { idOf, shownId } from "./http/path-values.ts";
import { chatChannels, emailChannels, type Channels } from "../store/notices/monitor-channels.ts";
import type { RateLimit } from "../agents/rate-limit.ts";
import type { ResourceDeps, TestAsked, TestOutcome } from "./deps.ts";
import type { Actor } from "../store/people/tokens.ts";
import type { Work } from "../store/engine/work.ts";

/** The most channels of a customer and kind; an alert is a message to each. */
const channelsMax = 50;

type Row = { readonly id: number; readonly monitor_uid: string };
type Kind<W extends { monitor_uid: string }, R extends Row> = {
  readonly name: "chat" | "email";
  readonly body: Body<W>;
  readonly shape: Shape<unknown>;
  readonly of: (work: Work) => Channels<W, R & { when_created: string; when_updated: string }>;
  readonly encode: (row: R, actor: Actor) => EmailChannel;
  readonly fault: (write: W) => ProblemAnswer | undefined;
  readonly test: (work: Work, asked: TestAsked, row: R) => Promise<TestOutcome>;
};

/** How often a channel may be tried out. */
const testsPerMinute = 5;
/** When too many messages went out before, some are an hour old by then. */
const testLaterMs = 600_000;

export function monitorChannelEndpoints(deps: ResourceDeps): readonly Endpoint[] {
  const { settings } = deps;
  const { channelTests } = deps.ports;
  const limit = deps.rateLimit({
    burst: testsPerMinute,
    perSecond: testsPerMinute / 60,
    keysMax: 100_000,
  });
  const customer = ({ customerId }: Actor) => ({ customer: { id: customerId } });
  return [
    ...endpointsOf(limit, {
      name: "chat",
      body: chatChannelWrite,
      shape: chatChannelShape,
      of: chatChannels,
      encode: (row, actor) => ({ ...row, ...customer(actor) }) satisfies ChatChannel,
      fault: ({ chat_hook_url: url }) => {
        const message = hookUrlFault(url, settings.privateHooksAllowed);
        return message === undefined ? undefined : invalid([{ path: "/chat_hook_url", message }]);
      },
      test: async (work, asked, { id, chat_hook_url: hookUrl }) =>
        channelTests.chat(work, asked, { id, hookUrl }),
    }),
    ...endpointsOf(limit, {
      name: "email",
      body: emailChannelWrite,
      shape: emailChannelShape,
      of: emailChannels,
      encode: (row, actor) => ({ ...row, ...customer(actor) }),
      fault: () => undefined,
      test: async (work, asked) => channelTests.email(work, asked),
    }),
  ];
}

function endpointsOf<W extends { monitor_uid: string }, R extends Row>(
  limit: RateLimit,
  kind: Kind<W, R>,
): readonly Endpoint[] {
  return [...readEndpoints(kind), ...writeEndpoints(kind), testEndpoint(limit, kind)];
}

function pathsOf(name: "chat" | "email") {
  const all = `/monitor-notification-channel/${name}/`;
  const [noun, a] = name === "chat" ? ["ChatChannel", "a chat"] : ["EmailChannel", "an email"];
  return { all, one: `${all}:channel_id/`, noun, a };
}

/** Whoever knows a hook's address can post to it, so those who only look do not see channels. */
function readEndpoints<W extends { monitor_uid: string }, R extends Row>(
  kind: Kind<W, R>,
): readonly Endpoint[] {
  const { all, one, noun, a } = pathsOf(kind.name);
  return [
    forUsers({
      method: "GET",
      path: all,
      id: `list${noun}s`,
      needs: { role: "write", scope: "customer" },
      summary: `List ${kind.name} channels of alerts`,
      gives: lists(kind.shape),
      handle: async ({ actor, read }) =>
        list(async (range) =>
          read(async (work) => {
            const rows = await kind.of(work).list(actor.customerId, range);
            return rows.map((row) => kind.encode(row, actor));
          }),
        ),
    }),
    forUsers({
      method: "GET",
      path: one,
      id: `get${noun}`,
      needs: { role: "write", scope: "customer" },
      summary: `Read ${a} channel of alerts`,
      gives: gives(kind.shape),
      refuses: [404],
      handle: async ({ actor, param, read }) => {
        const id = param("channel_id");
        const row = await read(async (work) => kind.of(work).find(actor.customerId, idOf(id)));
        return row === undefined ? missing(kind.name, id) : ok(kind.encode(row, actor));
      },
    }),
  ];
}

function writeEndpoints<W extends { monitor_uid: string }, R extends Row>(
  kind: Kind<W, R>,
): readonly Endpoint[] {
  const { name, body, shape, of, encode, fault } = kind;
  const { all, one, noun, a } = pathsOf(name);
  const taken = (uid: string) => conflict(`another ${name} channel has the monitor_uid ${uid}`);
  return [
    forUsers({
      method: "POST",
      path: all,
      id: `create${noun}`,
      needs: { role: "write", scope: "customer" },
      summary: `Create ${a} channel of alerts`,
      gives: makes(shape),
      refuses: [409],
      body,
      handle: async ({ actor, body: write, change }) =>
        fault(write) ??
        change(async (work) => {
          const id = await of(work).create(actor.customerId, write, channelsMax);
          if (id === "taken") return taken(write.monitor_uid);
          if (id === "too-many")
            return conflict(`a customer has at most ${channelsMax} ${name} channels`);
          const row = await of(work).find(actor.customerId, id);
          return row === undefined ? missing(name, String(id)) : created(encode(row, actor));
        }),
    }),
    forUsers({
      method: "PUT",
      path: one,
      id: `update${noun}`,
      needs: { role: "write", scope: "customer" },
      summary: `Edit ${a} channel of alerts`,
      gives: gives(shape),
      refuses: [404, 409],
      body,
      identity: { field: "id", param: "channel_id" },
      handle: async ({ actor, body: write, param, change }) =>
        fault(write) ??
        change(async (work) => {
          const id = param("channel_id");
          const before = await of(work).find(actor.customerId, idOf(id));
          if (before === undefined) return missing(name, id);
          if ((await of(work).update(actor.customerId, before.id, write)) === "taken")
            return taken(write.monitor_uid);
          const row = await of(work).find(actor.customerId, before.id);
          return row === undefined ? missing(name, id) : ok(encode(row, actor));
        }),
    }),
    forUsers({
      method: "DELETE",
      path: one,
      id: `delete${noun}`,
      needs: { role: "write", scope: "customer" },
      summary: `Delete ${a} channel of alerts, with what is still to be sent to it`,
      gives: givesNothing,
      refuses: [404],
      handle: async ({ actor, param, change }) =>
        change(async (work) => {
          const id = param("channel_id");
          const row = await of(work).find(actor.customerId, idOf(id));
          if (row === undefined) return missing(name, id);
          await of(work).remove(row.id);
          return noContent;
        }),
    }),
  ];
}

function testEndpoint<W extends { monitor_uid: string }, R extends Row>(
  limit: RateLimit,
  { name, of, test }: Kind<W, R>,
): Endpoint {
  const { one, noun, a } = pathsOf(name);
  return forUsers({
    method: "POST",
    path: `${one}test/`,
    id: `test${noun}`,
    needs: { role: "write", scope: "customer" },
    summary: `Send a test message to ${a} channel, on the way of an alert`,
    gives: gives(channelTestedShape),
    refuses: [404, 409, 429],
    handle: async ({ actor, param, change }) => {
      // Taken once, however often the transaction is run.
      let takenMs: number | undefined;
      return change(async (work) => {
        const id = param("channel_id");
        const row = await of(work).find(actor.customerId, idOf(id));
        if (row === undefined) return missing(name, id);
        const waitMs = (takenMs ??= limit.take(`${name} ${row.id}`));
        if (waitMs > 0)
          return tooMany(
            `this channel was tried out just now, as often as is allowed: up to ${testsPerMinute} times a minute`,
            waitMs,
          );
        const { customerId, username } = actor;
        return testAnswer(await test(work, { customerId, username, uid: row.monitor_uid }, row));
      });
    },
  });
}

function testAnswer(outcome: TestOutcome): Answer {
  switch (outcome.kind) {
    case "queued":
      return ok({ queued: true, messages: outcome.messages } satisfies ChannelTested);
    case "nobody":
      return conflict(
        "no address is subscribed to alerts, so a mail would go to nobody; subscribe one by POST /notifications/monitor/subscribe/",
      );
    case "limited":
      return tooMany("too many messages went out before; alerts still do", testLaterMs);
    default:
      return outcome satisfies never;
  }
}

function missing(name: string, id: string): ProblemAnswer {
  return notFound(`${name} channel ${shownId(id)}`);
}
