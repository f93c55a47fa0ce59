// Bots of a domain: those that nobody reviewed, with a decision in one click; what happens to whom; the two lists of addresses.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { botClassWords } from "../../core/serving/bot-class-words.ts";
import { botClasses } from "../../core/serving/verdict.ts";
import type { Policy } from "../../wire/customer/policy.ts";
import type { UnreviewedDomain } from "../../wire/customer/unreviewed-bots.ts";
import { useAsked, type Asked } from "../asked.ts";
import { useDoing } from "../doing.ts";
import { BotList } from "../parts/bot-list.tsx";
import { BotSources } from "../parts/bot-sources.tsx";
import {
  Answer,
  Badge,
  Button,
  Choice,
  Note,
  TextField,
  Panel,
  RefusalNote,
  Table,
} from "../parts/pieces.tsx";
import {
  decideOnBot,
  outcomesOf,
  ownClassOf,
  ownPolicyOf,
  setClass,
  setUnreviewed,
} from "../policy.ts";
import { refusedSought } from "../refused-sought.ts";
import { goTo, hrefTo } from "../route.ts";
import { useMay, useSession } from "../session.ts";
import { visibleText } from "../visible-text.ts";
import { shortCount } from "../words.ts";
import type { TabProps } from "../tab.ts";

export function BotsTab({ domain }: TabProps): JSX.Element {
  const { domains, may_read_logs: mayReadLogs } = useSession();
  // A token for some domains may not read the policy, which is of the customer.
  const policy = useAsked<Policy>(domains === null ? "/bot-access-policy/" : undefined, {
    topics: ["bots"],
  });
  const unreviewed = useAsked<readonly UnreviewedDomain[]>("/unreviewed-bots/", {
    topics: ["bots"],
    domain,
  });
  return (
    <>
      <Unreviewed domain={domain} asked={unreviewed} policy={policy} />
      {mayReadLogs && <WhyRefused domain={domain} />}
      {domains === null && <PolicyTable domain={domain} policy={policy} />}
      <BotList domain={domain} list="bad" />
      <BotList domain={domain} list="vip" />
      <BotSources domain={domain} />
    </>
  );
}

function Unreviewed({
  domain,
  asked,
  policy,
}: {
  readonly domain: string;
  readonly asked: Asked<readonly UnreviewedDomain[]>;
  readonly policy: Asked<Policy>;
}): JSX.Element {
  const mayWrite = useMay("write") && policy.value !== undefined;
  const doing = useDoing();
  const decided = decidedBots(policy.value, domain);
  const say = (bot: string, what: "let-in" | "refuse"): void => {
    void doing.run(async () => {
      await decideOnBot(domain, bot, what);
      policy.again();
      asked.again();
    });
  };
  return (
    <Panel
      title="Bots that nobody reviewed"
      beside={<span class="quiet">requests of the last 30 days</span>}
    >
      <Answer asked={asked}>
        {(found) => {
          const own = found.find((one) => one.domain_name === domain);
          if (own === undefined) return <p class="quiet">There is none.</p>;
          return (
            <>
              <p>{own.domain_policy}</p>
              {own.bots.length === 0 ? (
                <p class="quiet">None came.</p>
              ) : (
                <Table caption="Unreviewed bots by their requests" heads={["Bot", "Requests", ""]}>
                  {own.bots.map(({ name, description, requests }) => (
                    <tr key={name}>
                      <td class="long">
                        <strong>{visibleText(name)}</strong>{" "}
                        {description !== null && (
                          <div class="quiet">{visibleText(description)}</div>
                        )}
                      </td>
                      <td class="number">{shortCount(requests)}</td>
                      <td>
                        {decided.has(name) ? (
                          <Badge tone={decided.get(name) === true ? "good" : "bad"}>
                            {decided.get(name) === true ? "you let it in" : "you refused it"}
                          </Badge>
                        ) : (
                          mayWrite && (
                            <div class="row acts">
                              {" "}
                              <Button
                                disabled={doing.isBusy}
                                onClick={() => say(name, "let-in")}
                                label={`Let in ${visibleText(name)}`}
                              >
                                Let in
                              </Button>
                              <Button
                                kind="danger"
                                disabled={doing.isBusy}
                                onClick={() => say(name, "refuse")}
                                label={`Refuse ${visibleText(name)}`}
                              >
                                Refuse
                              </Button>
                            </div>
                          )
                        )}
                      </td>
                    </tr>
                  ))}
                </Table>
              )}
            </>
          );
        }}
      </Answer>
      <RefusalNote failure={doing.failure} />
    </Panel>
  );
}

/** What was decided on bots by their names: whether each is let in. */
function decidedBots(policy: Policy | undefined, domain: string): ReadonlyMap<string, boolean> {
  if (policy === undefined) return new Map();
  return new Map(
    outcomesOf(policy, domain).flatMap(({ decided, isLetIn }) =>
      decided === undefined ? [] : [[decided, isLetIn] as const],
    ),
  );
}

/** Leads to the records: each says what was decided about its request, and why. */
function WhyRefused({ domain }: { readonly domain: string }): JSX.Element {
  const [text, setText] = useState("");
  const [decision, setDecision] = useState<string>();
  const look = (event: Event): void => {
    event.preventDefault();
    const sought = refusedSought(text);
    setDecision(sought.kind === "decision" ? sought.id : undefined);
    if (sought.kind === "logs") goTo(hrefTo(["d", domain, "logs"], sought.query));
  };
  return (
    <Panel title="Why was a request refused?">
      <form onSubmit={look}>
        <TextField
          label="Address of the visitor, id of the request, or X-Accel-Decision"
          hint="192.0.2.7, a range such as 192.0.2.0/24, or the request id of the logs; by address the refused requests are listed"
          value={text}
          onInput={setText}
          isRequired
        />
        <Button submits>Look</Button>
      </form>
      {decision !== undefined && (
        <Note>
          {decision} is what a visitor was sent as <code>X-Accel-Decision</code>. Only the host that
          refused it knows it: its operator looks it up there with{" "}
          <code>accel-agent why {decision}</code>. Here the request is found by the address of the
          visitor, and by its time in the logs.
        </Note>
      )}
    </Panel>
  );
}

function PolicyTable({
  domain,
  policy,
}: {
  readonly domain: string;
  readonly policy: Asked<Policy>;
}): JSX.Element {
  const mayWrite = useMay("write");
  const doing = useDoing();
  const change = (action: () => Promise<void>): void => {
    void doing.run(async () => {
      await action();
      policy.again();
    });
  };
  return (
    <Panel title="What happens to whom">
      <Answer asked={policy}>
        {(found) => (
          <>
            <Table caption="Who is let in, and who is refused" heads={["Who", "", "Why", ""]}>
              {outcomesOf(found, domain).map(({ who, isLetIn, why, decided }) => (
                <tr key={`${who} ${why}`}>
                  <td class="long">{visibleText(who)}</td>
                  <td>
                    <Badge tone={isLetIn ? "good" : "bad"}>{isLetIn ? "let in" : "refused"}</Badge>
                  </td>
                  <td class="quiet">{visibleText(why)}</td>
                  <td>
                    {mayWrite && decided !== undefined && (
                      <Button
                        disabled={doing.isBusy}
                        label={`Take back what was decided about ${visibleText(who)}`}
                        onClick={() => change(async () => decideOnBot(domain, decided, "nothing"))}
                      >
                        Take back
                      </Button>
                    )}
                  </td>
                </tr>
              ))}
            </Table>
            {mayWrite && <UnreviewedChoices domain={domain} policy={found} change={change} />}
          </>
        )}
      </Answer>
      <RefusalNote failure={doing.failure} />
    </Panel>
  );
}

/** The choice for all bots that nobody reviewed, and for each class of them where the domain has a policy of its own. */
function UnreviewedChoices({
  domain,
  policy,
  change,
}: {
  readonly domain: string;
  readonly policy: Policy;
  readonly change: (action: () => Promise<void>) => void;
}): JSX.Element {
  const own = ownPolicyOf(policy, domain);
  return (
    <>
      <div class="row">
        <Choice
          label="Bots that nobody reviewed"
          value={own}
          options={[
            [
              "general",
              `as in general: ${policy.general_policy.unknown_bots_can_access ? "let in" : "refuse"}`,
            ],
            ["let-in", "let in"],
            ["refuse", "refuse"],
          ]}
          onChange={(say) => change(async () => setUnreviewed(domain, say))}
        />
        {own !== "general" &&
          botClasses.map((botClass) => (
            <Choice
              key={botClass}
              label={`Unknown ${botClassWords[botClass].many}`}
              value={ownClassOf(policy, domain, botClass)}
              options={[
                ["as-others", "as other bots"],
                ["let-in", "let in"],
                ["refuse", "refuse"],
              ]}
              onChange={(say) => change(async () => setClass(domain, botClass, say))}
            />
          ))}
      </div>
      {own === "general" && (
        <p class="quiet">
          To decide otherwise on {botClasses.map((one) => botClassWords[one].many).join(", ")},
          choose first what happens to other bots here.
        </p>
      )}
    </>
  );
}
