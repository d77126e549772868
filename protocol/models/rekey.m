-- The boot slots with their seed, and changing the secret over the air (section 2b), for rumur: one
-- device, the keyring that calls it, power cuts at any write, and a relay that keeps what is on its
-- way for as long as it likes. Cryptography is ideal. What is checked, and how to run it:
-- docs/proofs.md.
--
-- A seed is replaced whenever the count is raised, in the same write, so that one number stands for
-- both: what a start is made from is the secret and that number. Sessions are in sessions.m; here a
-- first packet reaches the start that answered its opening, or nothing.
--
-- Each rule is a constant; the tests set one at a time to false, and expect a trace.

const
  SECRETS: 3;
  CALLS: 2;               -- of system.rekey
  RAISES: 4;              -- of the count
  FAULTS: 1;              -- writes that a medium loses without saying so

  REPLACE: true;          -- the seed is replaced on the medium before it is used
  BOTH: true;             -- in both slots
  READ_BACK: true;        -- what was written is read back, or there is no start
  FREE_SLOT: true;        -- the slot that was not read is written first
  RAISE: true;            -- accepting a rekey raises the count
  KEPT_FIRST: true;       -- the keyring holds the new secret before the call is made
  OLD_KEPT: true;         -- the keyring keeps the old one until the new one was answered
  EXPIRES: true;          -- the call carries expires
  LATE: true;             -- the new one is given up only for an answer to a question 15 minutes later
  DURABLE: true;          -- a confirmation is on the medium before it is answered
  ERASE: true;            -- it erases the old secret
  SECOND: true;           -- a trial ends at the second start after it began

type
  S: 1..SECRETS;
  S0: 0..SECRETS;         -- 0: none
  N: 0..RAISES;
  N0: 0..(RAISES + 1);    -- 0: none, else one more than an N
  SLOT: 1..2;

var
  -- the medium
  valid: array[SLOT] of boolean;
  number: array[SLOT] of N;
  secret: S;
  trial: S0;
  starts: 0..2;                                  -- since the trial began
  -- the device's memory
  phase: enum { off, first, second, up };        -- the first or the second slot is being written
  writes: SLOT;                                  -- which is this one
  read: N;                                       -- what both held before
  asked: S0;                                     -- the secret of a rekey; 0: they are for a start
  from: array[S] of N0;                          -- what the start of each secret was made from
  unwritten: boolean;                            -- a confirmation that is answered, and not yet written
  -- the keyring, and its user
  current: S;
  pending: S0;
  knows: S0;                                     -- the new secret in the caller's memory
  dropped: S0;                                   -- the old secret, once it has dropped that
  age: 0..2;                                     -- of the call: expired after 0, 15 minutes after 1
  calls: 0..CALLS;
  -- on its way
  call, accepted, denied: boolean;               -- the call, its answer, and "trial: null"
  packet: array[S] of array[N] of boolean;       -- a first packet for a start
  answered: S0;                                  -- the answer under this secret
  -- what was observed
  faults: 0..FAULTS;
  used: array[S] of array[N] of boolean;
  newest: N0;                                    -- of all that starts were made from
  again, long: boolean;

function other(s: SLOT): SLOT; begin return 3 - s; end;

procedure makeStart(x: S; n: N);
begin
  if used[x][n] then again := true; endif;
  used[x][n] := true;
  from[x] := n + 1;
  if newest < n + 1 then newest := n + 1; endif;
end;

procedure endTrial();
begin
  if trial != 0 then from[trial] := 0; endif;
  trial := 0;
  starts := 0;
  unwritten := false;
end;

procedure confirmTrial();
var
  old: S;
begin
  old := secret;
  secret := trial;
  trial := 0;
  starts := 0;
  unwritten := false;
  if ERASE then from[old] := 0; else trial := old; endif;
  -- The old secret's sessions end.
  call := false;
end;

procedure loseMemory();
begin
  phase := off;
  clear from;
  writes := 1;
  read := 0;
  asked := 0;
  unwritten := false;
  call := false;
end;

-- Reads the slots and begins to write; with no number left nothing happens.
procedure raise(x: S0);
var
  s: SLOT;
begin
  s := 1;
  if !valid[1] | (valid[2] & number[2] > number[1]) then s := 2; endif;
  if number[s] < RAISES then
    read := number[s];
    writes := FREE_SLOT ? other(s) : s;
    valid[writes] := false;
    asked := x;
    phase := first;
  endif;
end;

-- Both slots are written.
procedure finish();
begin
  phase := up;
  if asked != 0 then
    trial := asked;
    asked := 0;
    starts := 0;
    makeStart(trial, read);
    accepted := true;
  else
    if trial != 0 then
      starts := starts + 1;
      if starts = 2 then
        if SECOND then endTrial(); else long := true; starts := 1; endif;
      endif;
    endif;
    if REPLACE then makeStart(secret, read); endif;
    if trial != 0 then makeStart(trial, read); endif;
  endif;
end;

startstate "provisioned"
begin
  for s: SLOT do valid[s] := true; number[s] := 0; endfor;
  secret := 1;
  trial := 0;
  starts := 0;
  loseMemory();
  current := 1;
  pending := 0;
  knows := 0;
  dropped := 0;
  age := 0;
  calls := 0;
  accepted := false;
  denied := false;
  clear packet;
  answered := 0;
  faults := 0;
  clear used;
  newest := 0;
  again := false;
  long := false;
end;

-- The device.

rule "start"
  phase = off & (valid[1] | valid[2])
==>
begin
  raise(0);
  if phase = first & !REPLACE then makeStart(secret, read); endif;
end;

-- A write ends; `lost`: the medium keeps what was there before, and says nothing.
ruleset lost: boolean do
  rule "written"
    (phase = first | phase = second) & (!lost | faults < FAULTS)
  ==>
  begin
    valid[writes] := true;
    if lost then faults := faults + 1; else number[writes] := read + 1; endif;
    if lost & READ_BACK then
      if asked = 0 then loseMemory(); else phase := up; asked := 0; endif;
    elsif phase = first & BOTH then
      phase := second;
      writes := other(writes);
      valid[writes] := false;
    else
      finish();
    endif;
  end;
endruleset;

rule "cut"
  phase != off
==>
begin
  loseMemory();
end;

rule "tenMinutes"
  phase = up & trial != 0
==>
begin
  endTrial();
end;

rule "confirmationWritten"
  phase = up & unwritten
==>
begin
  confirmTrial();
end;

rule "callArrives"
  phase = up & call & secret = current & trial = 0
==>
begin
  call := false;
  if RAISE then
    raise(knows);
  else
    trial := knows;
    makeStart(trial, from[secret] - 1);
    accepted := true;
  endif;
end;

ruleset x: S; n: N do
  rule "packetArrives"
    phase = up & packet[x][n] & from[x] = n + 1
  ==>
  begin
    packet[x][n] := false;
    answered := x;
    if x = trial then
      if DURABLE then confirmTrial(); else unwritten := true; endif;
    endif;
  end;
endruleset;

-- The caller.

ruleset x: S do
  rule "call"
    phase = up & secret = current & trial = 0 & pending = 0 & knows = 0 & x != current & calls < CALLS
  ==>
  begin
    calls := calls + 1;
    if KEPT_FIRST then pending := x; endif;
    knows := x;
    if dropped = x then dropped := 0; endif;
    age := 0;
    call := true;
    accepted := false;
    denied := false;
    answered := 0;
    clear packet;
  end;
endruleset;

rule "wait"
  knows != 0 & age < 2
==>
begin
  age := age + 1;
  if EXPIRES then call := false; endif;
end;

rule "crash"
  knows != pending
==>
begin
  -- Nobody knows what the call said; where it is on its way, it is for a secret that is lost.
  knows := pending;
  call := false;
end;

rule "accepted"
  accepted & knows != 0
==>
begin
  accepted := false;
  if !OLD_KEPT then
    dropped := current;
    current := knows;
    pending := 0;
    knows := 0;
  else
    pending := knows;
  endif;
end;

-- An opening under the new secret, and its answer.
rule "open"
  phase = up & knows != 0 & from[knows] != 0
==>
begin
  packet[knows][from[knows] - 1] := true;
end;

rule "answered"
  knows != 0 & answered = knows
==>
begin
  dropped := current;
  current := knows;
  pending := 0;
  knows := 0;
  answered := 0;
end;

rule "ask"
  phase = up & knows != 0 & secret = current & trial = 0 & (age = 2 | !LATE)
==>
begin
  denied := true;
end;

rule "denied"
  denied & knows != 0
==>
begin
  denied := false;
  pending := 0;
  knows := 0;
end;

invariant "no start is made twice" !again;
invariant "the medium holds no seed that a start was made from"
  forall s: SLOT do valid[s] -> number[s] >= newest endforall;
invariant "a device can start" valid[1] | valid[2];
invariant "the keyring has the device's secret" secret = current | secret = pending;
invariant "a dropped secret opens nothing"
  dropped = 0 | (secret != dropped & trial != dropped);
invariant "no trial outlives a second start" !long;
