// Codes with which hosts join a deployment site: a new one with the command that takes it, and those that are still open.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Enrolment, EnrolmentMade } from "../../wire/customer/enrolment.ts";
import { at, send } from "../api.ts";
import { useAsked, type Asked } from "../asked.ts";
import { useDoing } from "../doing.ts";
import { moment, several } from "../words.ts";
import { visibleText } from "../visible-text.ts";
import {
  Answer,
  Button,
  Choice,
  Confirm,
  TextField,
  RefusalNote,
  Secret,
  Table,
  Time,
} from "./pieces.tsx";

/** Whoever made a code waits for the host to come. */
const joinedEveryMs = 10_000;

type SiteOfCodes = { readonly id: number; readonly name: string };

export function SiteCodes({ id, name }: SiteOfCodes): JSX.Element {
  const asked = useAsked<readonly Enrolment[]>(at`/deployment-site/${id}/enrolment/`, {
    topics: ["enrolments"],
    everyMs: joinedEveryMs,
  });
  const [made, setMade] = useState<EnrolmentMade>();
  return (
    <>
      <NewCode
        id={id}
        name={name}
        onMade={(code) => {
          setMade(code);
          asked.again();
        }}
      />
      {made !== undefined && <MadeCode made={made} />}
      <OpenCodes
        id={id}
        name={name}
        asked={asked}
        onRevoked={(code) => {
          if (code === made?.id) setMade(undefined);
        }}
      />
    </>
  );
}

const lifetimes = [
  ["3600", "an hour"],
  ["86400", "a day"],
  ["604800", "a week"],
] as const;

function NewCode({
  id,
  name,
  onMade,
}: SiteOfCodes & { readonly onMade: (code: EnrolmentMade) => void }): JSX.Element {
  const [uses, setUses] = useState("1");
  const [lifetime, setLifetime] = useState<(typeof lifetimes)[number][0]>("3600");
  const doing = useDoing();
  const make = (event: Event): void => {
    event.preventDefault();
    void doing.run(async () => {
      const path = at`/deployment-site/${id}/enrolment/`;
      const asked = { uses: Number(uses), lifetime_seconds: Number(lifetime) };
      onMade(await send<EnrolmentMade>("POST", path, asked));
    });
  };
  return (
    <>
      <form class="row" onSubmit={make}>
        <TextField
          label="Hosts that may join with it"
          type="number"
          value={uses}
          onInput={setUses}
          isRequired
        />
        <Choice label="Good for" value={lifetime} options={lifetimes} onChange={setLifetime} />
        <Button submits disabled={doing.isBusy} label={`Make a code for ${name}`}>
          Make a code
        </Button>
      </form>
      <RefusalNote failure={doing.failure} />
    </>
  );
}

/** The two things that go to the host: a command, and the code that it asks for. */
function MadeCode({ made }: { readonly made: EnrolmentMade }): JSX.Element {
  return (
    <>
      <p>
        On a host where the package <code>accel-agent</code> is installed, give this command as
        root. It asks for the code:
      </p>
      <pre class="secret">accel-agent join --central {location.origin}</pre>
      <Secret
        label={`Code for ${several(made.uses, "host")}, until ${moment(Date.parse(made.when_expires))}`}
        text={made.code}
      />
    </>
  );
}

function OpenCodes({
  id,
  name,
  asked,
  onRevoked,
}: SiteOfCodes & {
  readonly asked: Asked<readonly Enrolment[]>;
  readonly onRevoked: (code: number) => void;
}): JSX.Element {
  const doing = useDoing();
  const revoke = (code: number): void => {
    void doing.run(async () => {
      await send("DELETE", at`/deployment-site/${id}/enrolment/${code}/`);
      onRevoked(code);
      asked.again();
    });
  };
  return (
    <>
      <h3>Open codes</h3>
      <Answer asked={asked}>
        {(found) => {
          const open = found.filter(({ state }) => state === "open");
          if (open.length === 0) return <p class="quiet">There is none.</p>;
          return (
            <Table
              caption={`Open codes of ${name}`}
              heads={["Code", "Made by", "Made", "Ends", "Joined", ""]}
            >
              {open.map((code) => (
                <tr key={code.id}>
                  <th scope="row">{code.id}</th>
                  <td>{visibleText(code.created_by)}</td>
                  <td>
                    <Time at={code.when_created} />
                  </td>
                  <td>
                    <Time at={code.when_expires} isDistance />
                  </td>
                  <td>
                    {code.used} of {code.uses}
                  </td>
                  <td>
                    <Confirm
                      question={`Revoke code ${code.id} of ${name}? Hosts that joined with it stay.`}
                      doIt={`Revoke code ${code.id}`}
                      label={`Revoke code ${code.id} of ${name}`}
                      disabled={doing.isBusy}
                      onYes={() => revoke(code.id)}
                    >
                      Revoke
                    </Confirm>
                  </td>
                </tr>
              ))}
            </Table>
          );
        }}
      </Answer>
      <RefusalNote failure={doing.failure} />
    </>
  );
}
