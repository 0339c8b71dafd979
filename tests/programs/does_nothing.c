/* The least that a program can do: measures what starting one costs. */
int main(void)
{
    return 0;
}
