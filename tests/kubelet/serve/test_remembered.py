"""A memory for answers: bounded in age and in number."""

from applecart.clock import Clock
from applecart.kubelet.serve.remembered import Remembered
from tests.virtual_time import elapse


async def test_an_answer_is_forgotten_when_its_time_is_over(clock: Clock) -> None:
    answers: Remembered[str, int] = Remembered(clock, most=10)
    answers.put("a", 1, good_s=10)
    answers.put("b", 2, good_s=20)
    await elapse(10)
    assert (answers.get("a"), answers.get("b"), len(answers)) == (None, 2, 1)


async def test_of_too_many_answers_the_oldest_goes(clock: Clock) -> None:
    answers: Remembered[int, int] = Remembered(clock, most=3)
    for number in range(10):
        answers.put(number, number, good_s=60)
        answers.put(0, 0, good_s=60)
    assert len(answers) == 3
    assert [number for number in range(10) if answers.get(number) is not None] == [0, 8, 9]
