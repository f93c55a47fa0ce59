// The tokens of a customer: which there are, and a new one. Sessions of browsers are among them.

import type { JSX } from "preact";
import type { ApiToken } from "../../wire/customer/token.ts";
import { at, send } from "../api.ts";
import { useAsked } from "../asked.ts";
import { useDoing } from "../doing.ts";
import { isSessionToken, ownTokenId } from "../own-token.ts";
import { useSession } from "../session.ts";
import { visibleText } from "../visible-text.ts";
import { NewToken } from "./new-token.tsx";
import { Answer, Badge, Confirm, Panel, RefusalNote, Table, Time } from "./pieces.tsx";

export function TokensPanel(): JSX.Element {
  const session = useSession();
  const asked = useAsked<readonly ApiToken[]>("/tokens/", { topics: ["tokens"] });
  const doing = useDoing();
  const revoke = (id: number): void => {
    void doing.run(async () => {
      await send("DELETE", at`/tokens/${id}/`);
      asked.again();
    });
  };
  return (
    <>
      <Panel title="Tokens and sessions">
        <Answer asked={asked}>
          {(tokens) => {
            const own = ownTokenId(session, tokens);
            return (
              <Table
                caption="Tokens and sessions"
                heads={["Token", "Name", "May", "For", "Whose", "Made", "Ends", "Last used", ""]}
              >
                {tokens.map((token) => (
                  <TokenRow
                    key={token.id}
                    token={token}
                    isOwn={token.id === own}
                    isBusy={doing.isBusy}
                    onRevoke={() => revoke(token.id)}
                  />
                ))}
              </Table>
            );
          }}
        </Answer>
        <RefusalNote failure={doing.failure} />
      </Panel>
      <NewToken onMade={asked.again} />
    </>
  );
}

function TokenRow({
  token,
  isOwn,
  isBusy,
  onRevoke,
}: {
  readonly token: ApiToken;
  readonly isOwn: boolean;
  readonly isBusy: boolean;
  readonly onRevoke: () => void;
}): JSX.Element {
  const { id, role, domains, username, when_expires: ends, when_last_used: used } = token;
  const name = visibleText(token.name);
  const what = `${isSessionToken(token) ? "session" : "token"} ${id}`;
  return (
    <tr>
      <th scope="row">{id}</th>
      <td class="long">
        {name === "" ? <span class="quiet">without a name</span> : name}{" "}
        {isSessionToken(token) && <Badge tone="plain">session</Badge>}{" "}
        {isOwn && <Badge tone="good">this one</Badge>}
      </td>
      <td>{role}</td>
      <td class="long">{domains === null ? "everything" : domains.join(", ")}</td>
      <td>{username}</td>
      <td>
        <Time at={token.when_created} />
      </td>
      <td>{ends === null ? "–" : <Time at={ends} isDistance />}</td>
      <td>{used === null ? "–" : <Time at={used} isDistance />}</td>
      <td>
        <Confirm
          question={
            isOwn
              ? `Revoke ${what}, ${name}? It is the one that you are signed in with: this session ends.`
              : `Revoke ${what}, ${name}? Whatever uses it is refused from then on.`
          }
          doIt={`Revoke ${what}`}
          label={`Revoke ${what}, ${name}`}
          disabled={isBusy}
          onYes={onRevoke}
        >
          Revoke
        </Confirm>
      </td>
    </tr>
  );
}
