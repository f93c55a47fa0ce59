// Makes a token that may do no more than what it is for.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Domain } from "../../wire/customer/domain.ts";
import type { ApiTokenMade } from "../../wire/customer/token.ts";
import type { Role } from "../../core/roles.ts";
import { Refusal, send } from "../api.ts";
import { useAsked } from "../asked.ts";
import { useDoing } from "../doing.ts";
import { visibleText } from "../visible-text.ts";
import {
  Answer,
  Button,
  Check,
  Choice,
  Choices,
  TextField,
  Panel,
  RefusalNote,
  Secret,
} from "./pieces.tsx";

const roleChoices: readonly (readonly [role: Role, text: string])[] = [
  ["read", "read: look at everything but secrets, tokens and channels"],
  ["clear", "clear: also clear caches"],
  ["write", "write: also change what is served and who is let in"],
  ["owner", "owner: everything"],
];

const dayS = 86_400;
const lifetimes = [
  [String(dayS), "a day"],
  [String(30 * dayS), "30 days"],
  [String(90 * dayS), "90 days"],
  [String(365 * dayS), "a year"],
  ["", "until it is revoked"],
] as const;

type Reach = "all" | "some";

export function NewToken({ onMade }: { readonly onMade: () => void }): JSX.Element {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("clear");
  const [reach, setReach] = useState<Reach>("all");
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [lifetime, setLifetime] = useState<string>(lifetimes[2][0]);
  const [made, setMade] = useState<ApiTokenMade>();
  const doing = useDoing();
  const make = (event: Event): void => {
    event.preventDefault();
    void doing.run(async () => {
      if (reach === "some" && chosen.length === 0)
        throw new Refusal(0, "choose at least one domain, or everything of the customer");
      const terms = {
        name,
        role,
        domains: reach === "some" ? chosen : null,
        lifetime_seconds: lifetime === "" ? null : Number(lifetime),
      };
      setMade(await send<ApiTokenMade>("POST", "/tokens/", terms));
      setName("");
      onMade();
    });
  };
  return (
    <Panel title="Another token">
      <form onSubmit={make}>
        <TextField
          label="Name"
          value={name}
          onInput={setName}
          isRequired
          placeholder="deploy of the shop"
          hint="What it is for. It is yours: changes by it are told as yours."
        />
        <div class="row">
          <Choice label="It may" value={role} options={roleChoices} onChange={setRole} />
          <Choice label="Good for" value={lifetime} options={lifetimes} onChange={setLifetime} />
        </div>
        <Choices
          label="What it is for"
          value={reach}
          options={[
            ["all", "Everything of the customer"],
            ["some", "Some domains"],
          ]}
          onChange={setReach}
        />
        {reach === "some" && <DomainChecks chosen={chosen} onChange={setChosen} />}
        <Button submits disabled={doing.isBusy}>
          Make the token
        </Button>
      </form>
      {made !== undefined && (
        <Secret label={`Token ${made.id}, ${visibleText(made.name)}`} text={made.token} />
      )}
      <RefusalNote failure={doing.failure} />
    </Panel>
  );
}

function DomainChecks({
  chosen,
  onChange,
}: {
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}): JSX.Element {
  const asked = useAsked<readonly Domain[]>("/domain/", { topics: ["domains"] });
  return (
    <Answer asked={asked}>
      {(domains) =>
        domains.length === 0 ? (
          <p class="quiet">There is no domain yet.</p>
        ) : (
          <fieldset class="checks">
            <legend>Domains, each with its sub-domains</legend>
            {domains.map(({ name }) => (
              <Check
                key={name}
                label={name}
                isOn={chosen.includes(name)}
                onChange={(isOn) =>
                  onChange(isOn ? [...chosen, name] : chosen.filter((one) => one !== name))
                }
              />
            ))}
          </fieldset>
        )
      }
    </Answer>
  );
}
